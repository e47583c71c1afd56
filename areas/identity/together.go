package identity

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
)

// planned is a treatment with what it makes of the section.
type planned struct {
	design.Treatment
	plan
}

// judgeTogether looks at what treatments mean beside each other. Only trials in blocks compare one with another; other
// questions give each an answer of its own.
func judgeTogether(q area.Asked, all []planned) []area.Finding {
	if !q.InBlocks {
		return nil
	}
	var out []area.Finding
	elsewhere := func(p planned) bool { return p.url != nil }
	if i := slices.IndexFunc(all, elsewhere); i >= 0 {
		if j := slices.IndexFunc(all, func(p planned) bool { return p.url == nil }); j >= 0 {
			err := fmt.Errorf("treatment %q stands behind a URL, and treatment %q is embedded: they differ in more than "+
				"their levels", all[i].ID, all[j].ID)
			return []area.Finding{area.Fault("", err, "give both a url, or neither")}
		}
	}
	for i, p := range all {
		if j := slices.IndexFunc(all[:i], func(o planned) bool { return o.same(p.plan) }); j >= 0 {
			out = append(out, area.Finding{
				Severity: area.Warning, Message: fmt.Sprintf("treatment %q is %q under another name: its levels change nothing",
					p.ID, all[j].ID),
				Hint: "expect no difference, or leave it out",
			})
			continue
		}
		out = append(out, idle(p, all)...)
	}
	return out
}

// same reports whether two treatments run alike.
func (p plan) same(o plan) bool {
	a, b := *p.spec, *o.spec
	for _, s := range []*Spec{&a, &b} { // these stand resolved in the plan
		s.Embedded, s.Operation, s.Identities, s.Account = nil, "", 0, ""
	}
	return p.knobs == o.knobs && p.operation == o.operation && p.identities == o.identities && p.as == o.as &&
		reflect.DeepEqual(a, b)
}

// longLife is a life of tokens beyond which a filled cache hardly ever misses during a trial.
const longLife = time.Minute

// idle warns of a treatment that differs from its baseline only in what acts when the cache misses, where it hardly
// ever does.
func idle(p planned, all []planned) []area.Finding {
	i := slices.IndexFunc(all, func(b planned) bool { return b.Baseline && b.ID != p.ID && b.alike(p.plan, missKnobs) })
	if i < 0 || p.url != nil || !p.rarelyMisses() || !all[i].rarelyMisses() {
		return nil
	}
	return []area.Finding{{
		Severity: area.Warning,
		Message: fmt.Sprintf("treatment %q differs from %q only in what acts when the cache misses, and with a cache that "+
			"is filled before the first trial and "+
			"tokens that live %v it hardly ever does", p.ID, all[i].ID, p.knobs.TTL),
		Hint: "expect no difference; turn the cache off, ask for identity tokens (operation: identity), or give tokens a " +
			"life of seconds (ttl: 2s)",
	}}
}

// rarelyMisses reports whether a call is answered from the cache but for the first.
func (p plan) rarelyMisses() bool {
	return p.url == nil && p.operation == opToken && p.knobs.Cache && p.knobs.TTL > longLife
}

// missKnobs takes out what acts only when the cache misses.
func missKnobs(k *reference.Knobs) {
	k.Singleflight, k.Signing, k.UpstreamConns, k.UpstreamLatency = false, "", 0, 0
	k.QuotaRate, k.QuotaBurst, k.QuotaMode = 0, 0, ""
}

// cacheKnobs takes out what acts only on tokens that are asked for again.
func cacheKnobs(k *reference.Knobs) {
	k.Cache, k.Singleflight, k.RefreshEarly, k.Jitter = false, false, 0, 0
}

// alike reports whether two treatments run alike apart from the knobs that without removes.
func (p plan) alike(o plan, without func(*reference.Knobs)) bool {
	without(&p.knobs)
	without(&o.knobs)
	return p.same(o)
}

// untouched reports whether treatment p, compared to the baseline b, cannot affect its operation: identity tokens for
// new audiences are never cached, shared or renewed, whatever the knobs say.
func untouched(p, b plan) bool {
	return p.url == nil && b.url == nil && p.operation == opIdentity && p.alike(b, cacheKnobs)
}

// list names treatments, the first few of many.
func list(ids []string) string {
	const most = 3
	for i := range ids {
		ids[i] = fmt.Sprintf("%q", ids[i])
	}
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
}
