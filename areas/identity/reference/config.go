// Package reference holds the two embedded servers of the identity area: a metadata endpoint that gives out tokens, and
// the STS and IAM server behind it. The token path is real: source address → workload identity → signed service-account
// JWT → token exchange (RFC 8693, signature verified) → generateAccessToken → cache. Both have knobs that make them
// fail in the known ways.
package reference

import (
	"errors"
	"fmt"
	"time"
)

// A Mode says what the STS does with an exchange that is over its quota.
type Mode string

// The modes.
const (
	Reject Mode = "reject" // answer 429 at once
	Queue  Mode = "queue"  // answer when the bucket has a token for it, in order of arrival
	Tarpit Mode = "tarpit" // never answer; the connection stays open until the client leaves
)

// EndpointKnobs are the costs and faults of the metadata endpoint. Zero values mean none.
type EndpointKnobs struct {
	// CPUQuota limits the process, in CPUs (0.1 is Kubernetes' 100m). The parent applies it; see EndpointConfig.Throttle.
	CPUQuota float64 `json:"cpu_quota"`
	// CPUPerRequest is the whole CPU time of the process per request, the HTTP work included.
	CPUPerRequest time.Duration `json:"cpu_per_request"`
	// Procs is GOMAXPROCS; 0: CPUQuota rounded up, or the runtime's choice without a quota.
	Procs int `json:"procs"`
	// MaxConns is how many connections are accepted at a time; further ones stay in the listen queue.
	MaxConns int `json:"max_conns"`
	// Backlog is the argument of listen(2); the kernel clips it to net.core.somaxconn. 0: somaxconn.
	Backlog int `json:"backlog"`
	// IdleTimeout closes keep-alive connections that have been idle for so long; 0: never.
	IdleTimeout time.Duration `json:"idle_timeout"`
	Cache       bool          `json:"cache"`
	// Singleflight lets concurrent requests for one identity share an exchange.
	Singleflight bool `json:"singleflight"`
	// RefreshEarly renews a cached token in the background this long before it expires; 0: the request after expiry waits.
	RefreshEarly time.Duration `json:"refresh_early"`
	// Jitter adds a random time between 0 and Jitter to RefreshEarly, drawn per token.
	Jitter time.Duration `json:"jitter"`
	// UpstreamConns bounds the connections to the STS; 0: no bound.
	UpstreamConns int `json:"upstream_conns"`
	// UnavailableFirst answers 503 for this long after an identity's first request, as in the first seconds of a pod.
	UnavailableFirst time.Duration `json:"unavailable_first"`
	// Drop is the share, 0…1, of requests that are read and never answered: the connection stays open until the client
	// leaves. It works above TCP, so nothing is retransmitted: it is a lost request, not a lost packet.
	Drop float64 `json:"drop"`
	// LivenessPeriod is how often the kubelet's stand-in asks /healthz, with a timeout of 1 s; 0: never.
	LivenessPeriod time.Duration `json:"liveness_period"`
	// LivenessFailures is how many failed probes in a row restart the endpoint, which loses its cache.
	LivenessFailures int `json:"liveness_failures"`
	// Signing is the algorithm of service-account JWTs: RS256 or ES256.
	Signing Algorithm `json:"signing"`
}

// STSKnobs are the costs and faults of the STS and IAM server.
type STSKnobs struct {
	// TTL is the life of access and identity tokens.
	TTL time.Duration `json:"ttl"`
	// UpstreamLatency is added to each of the two hops.
	UpstreamLatency time.Duration `json:"upstream_latency"`
	// QuotaRate is the exchanges per second that a workload-identity pool may make; 0: no quota.
	QuotaRate float64 `json:"quota_rate"`
	// QuotaBurst is how many exchanges may come at once.
	QuotaBurst int  `json:"quota_burst"`
	QuotaMode  Mode `json:"quota_mode"`
}

// Knobs are all knobs of a pair of servers.
type Knobs struct {
	EndpointKnobs
	STSKnobs
}

// EndpointConfig is what the parent hands to an endpoint.
type EndpointConfig struct {
	Addr  string `json:"addr"`  // of the metadata protocol
	Admin string `json:"admin"` // of /healthz and /debug, which work when Addr is saturated
	STS   string `json:"sts"`   // base URL
	// Throttle asks the endpoint to keep to CPUQuota by itself, where there is no control group.
	Throttle bool `json:"throttle"`
	// SigningKey is the private key of the cluster's service-account issuer (PKCS #8). It must travel through memory only.
	SigningKey []byte `json:"signing_key"`
	// Seed draws what is random: jitter and dropped requests.
	Seed uint64 `json:"seed"`
	EndpointKnobs
}

// STSConfig is what the parent hands to an STS.
type STSConfig struct {
	Addr  string `json:"addr"`
	Admin string `json:"admin"`
	// TrustedKey is the public key of the service-account issuer (PKIX).
	TrustedKey []byte `json:"trusted_key"`
	STSKnobs
}

// Ready is what a server reports when it answers.
type Ready struct {
	Addr string `json:"addr"`
	// Admin is host, port and a path that is secret: who knows it can read what was counted, and empty the cache.
	Admin string `json:"admin"`
	// Backlog is the listen backlog in force, after the kernel's limit.
	Backlog int `json:"backlog"`
	Procs   int `json:"procs"`
}

// Validate reports the first knob that makes no sense.
func (k EndpointKnobs) Validate() error {
	switch {
	case !(k.CPUQuota >= 0 && k.CPUQuota <= 1024):
		return fmt.Errorf("cpu_quota %v is not a number of CPUs", k.CPUQuota)
	case k.CPUQuota > 0 && k.CPUQuota < 0.01:
		return fmt.Errorf("cpu_quota %v is below the kernel's least, 0.01 CPU", k.CPUQuota)
	case k.Procs < 0 || k.MaxConns < 0 || k.Backlog < 0 || k.UpstreamConns < 0 || k.LivenessFailures < 0:
		return errors.New("knobs out of range: procs, max_conns, backlog, upstream_conns and liveness_failures must not " +
			"be negative")
	case k.CPUPerRequest < 0 || k.IdleTimeout < 0 || k.RefreshEarly < 0 || k.Jitter < 0 || k.UnavailableFirst < 0 ||
		k.LivenessPeriod < 0:
		return errors.New("knobs out of range: durations must not be negative")
	case !(k.Drop >= 0 && k.Drop < 1):
		return fmt.Errorf("drop %v is not a share from 0 to below 1", k.Drop)
	case k.Signing != RS256 && k.Signing != ES256:
		return fmt.Errorf("signing %q is neither RS256 nor ES256", k.Signing)
	case k.Jitter > 0 && k.RefreshEarly == 0:
		return errors.New("jitter spreads early refreshes: it needs refresh_early")
	case k.LivenessPeriod > 0 && k.LivenessFailures == 0:
		return errors.New("liveness_period needs liveness_failures of at least 1")
	}
	return nil
}

// Validate reports the first knob that makes no sense.
func (k STSKnobs) Validate() error {
	switch {
	case k.TTL < time.Second:
		return fmt.Errorf("ttl %v is below 1s, the resolution of expires_in", k.TTL)
	case k.UpstreamLatency < 0:
		return errors.New("upstream_latency must not be negative")
	case !(k.QuotaRate >= 0 && k.QuotaRate <= 1e6) || k.QuotaBurst < 0:
		return fmt.Errorf("quota_rate %v and quota_burst %d must not be negative, nor the rate above 1e6/s",
			k.QuotaRate, k.QuotaBurst)
	case k.QuotaRate > 0 && k.QuotaBurst < 1:
		return errors.New("quota_rate needs quota_burst of at least 1")
	case k.QuotaRate > 0 && k.QuotaMode != Reject && k.QuotaMode != Queue && k.QuotaMode != Tarpit:
		return fmt.Errorf("quota_mode %q is not one of reject, queue, tarpit", k.QuotaMode)
	}
	return nil
}

// Validate reports the first knob that makes no sense, also of both servers together.
func (k Knobs) Validate() error {
	if err := k.EndpointKnobs.Validate(); err != nil {
		return err
	}
	if err := k.STSKnobs.Validate(); err != nil {
		return err
	}
	if k.RefreshEarly+k.Jitter >= k.TTL {
		return fmt.Errorf("refresh_early %v + jitter %v must be shorter than ttl %v, or every request refreshes",
			k.RefreshEarly, k.Jitter, k.TTL)
	}
	return nil
}
