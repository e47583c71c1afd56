package reference

import (
	"slices"
	"time"
)

// blogCost makes 100m of CPU serve 163 requests a second, the goodput of the published report: 0.1 CPU ÷ 163/s.
const blogCost = 613500 * time.Nanosecond

// A preset is a named set of knobs.
type preset struct {
	name, help string
	adjust     func(*Knobs)
}

// presets are ordered for the reader: the published case first.
var presets = []preset{
	{
		"blog-2020", "the published GKE report: 100m CPU, 64 accepted connections, listen backlog 1024, warm cache",
		func(k *Knobs) {
			k.CPUQuota, k.CPUPerRequest = 0.1, blogCost
			k.MaxConns, k.Backlog = 64, 1024
		},
	},
	{"cpu-only", "the same CPU limit and cost, every connection accepted", func(k *Knobs) {
		k.CPUQuota, k.CPUPerRequest = 0.1, blogCost
	}},
	{
		"sts-quota-reject", "no cache, STS quota of 100/s (6,000 a minute), 429 above it",
		func(k *Knobs) { quota(k, Reject) },
	},
	{
		"sts-quota-queue", "no cache, STS quota of 100/s, exchanges above it wait for their turn",
		func(k *Knobs) { quota(k, Queue) },
	},
	{
		"sts-quota-tarpit", "no cache, STS quota of 100/s, exchanges above it are never answered",
		func(k *Knobs) { quota(k, Tarpit) },
	},
	{"healthy", "no limits, warm cache, early refresh with jitter", func(*Knobs) {}},
}

// quota is the published quota of the cloud's token exchange, 6,000 a minute and project. ES256 keeps the cost of
// signing far below the quota on small machines.
func quota(k *Knobs, m Mode) {
	k.Cache, k.Singleflight = false, false
	k.RefreshEarly, k.Jitter = 0, 0
	k.Signing = ES256
	k.QuotaRate, k.QuotaBurst, k.QuotaMode = 100, 50, m
}

// base returns what every preset starts from: a healthy server.
func base() Knobs {
	return Knobs{
		EndpointKnobs: EndpointKnobs{
			Cache: true, Singleflight: true, RefreshEarly: 5 * time.Minute, Jitter: 5 * time.Minute,
			LivenessFailures: 3, Signing: RS256,
		},
		STSKnobs: STSKnobs{TTL: time.Hour, QuotaBurst: 50, QuotaMode: Reject},
	}
}

// Preset returns the knobs of the named preset.
func Preset(name string) (Knobs, bool) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.name == name })
	if i < 0 {
		return Knobs{}, false
	}
	k := base()
	presets[i].adjust(&k)
	return k, true
}

// Presets lists the presets' names, the published case first.
func Presets() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.name)
	}
	return names
}

// PresetHelp returns one line about the named preset; empty for an unknown one.
func PresetHelp(name string) string {
	for _, p := range presets {
		if p.name == name {
			return p.help
		}
	}
	return ""
}
