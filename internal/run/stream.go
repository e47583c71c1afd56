package run

import (
	"context"
	"fmt"
	"slices"

	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/unit"
)

// A Stream is a stream of load to an arm. It ends a segment by itself when the target suffers, if the file says so.
type Stream struct {
	load.Stream
	Keys int // identities of the target's callers
	// Multiplexed: a connection may carry several calls at a time.
	Multiplexed bool
}

// OpenStream opens a stream of load. seed draws the mix of operations. With keepCalls its memory grows with every call.
func (a *Arm) OpenStream(ctx context.Context, seed uint64, keepCalls bool) (*Stream, error) {
	cfg, err := a.streamConfig()
	if err != nil {
		return nil, err
	}
	cfg.Seed, cfg.KeepCalls = seed, keepCalls
	s, err := a.open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	a.breaches.follow(s)
	if a.Load.Abort != nil {
		s = &brake{Stream: s, abort: *a.Load.Abort}
	}
	secure := cfg.Endpoint.TLS
	return &Stream{
		Stream: s, Keys: cfg.Endpoint.Keys, Multiplexed: secure != nil && slices.Contains(secure.NextProtos, "h2"),
	}, nil
}

// open opens a stream of load.
func (x *Stage) open(ctx context.Context, cfg load.Config) (load.Stream, error) {
	open := load.Open
	if x.Open != nil {
		open = x.Open
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the load stream: %w", err)
	}
	return s, nil
}

// endpoint returns where the target's operations go over the wire; nil: nowhere.
func (a *Arm) endpoint() (*load.Endpoint, error) {
	find := a.Target.Can().Endpoint
	if find == nil {
		return nil, nil //nolint:nilnil // a target may have none
	}
	endpoint, err := find(a.Treatment)
	if err != nil {
		return nil, fmt.Errorf("endpoint of %s: %w", a.Treatment.ID, err)
	}
	return endpoint, nil
}

func (a *Arm) streamConfig() (load.Config, error) {
	endpoint, err := a.endpoint()
	if err != nil {
		return load.Config{}, err
	}
	cfg := a.Load.Config
	cfg.Operations, cfg.Limit = a.Ops, a.Env.Limit
	if endpoint != nil {
		cfg.Endpoint = *endpoint
	}
	cfg.Host = accounts(a.placement(a.Treatment, endpoint))
	return cfg, nil
}

// Audit records what the generator did between two states of a stream. g has what a drive measures in its own way: the
// seconds, the CPU time and the effort.
func (a *Arm) Audit(from, to load.Progress, g record.Generator) error {
	return a.Record(Between(from, to, g), to.Held-from.Held)
}

// Between adds to g what happened between two states of a stream.
func Between(from, to load.Progress, g record.Generator) record.Generator {
	g.Offered += to.Due - from.Due
	g.Sent += to.Sent - from.Sent
	g.Unsendable += to.UnsentTimeouts - from.UnsentTimeouts
	g.BytesIn += to.BytesIn - from.BytesIn
	g.BytesOut += to.BytesOut - from.BytesOut
	return g
}

// Record records what the generator did, and warns if max_rate held so many calls back that it shows.
func (a *Arm) Record(g record.Generator, held uint64) error {
	g.Treatment, g.Block, g.Engine = a.Trial.Treatment, a.Trial.Block, string(a.Load.Engine)
	g.Workers, g.Placement = a.Load.workers(), a.placed[a.Trial.Treatment]
	if err := a.Writer.Generator(g); err != nil {
		return err
	}
	if held == 0 || float64(held) < limiting*float64(g.Offered) && g.Unsendable == 0 {
		return nil
	}
	return a.Writer.Warning(record.Warning{Treatment: g.Treatment, Text: fmt.Sprintf(
		"max_rate held calls back, %d times in %s: they were sent late, or not at all; a higher max_rate lets calls catch "+
			"up after a stall", held, unit.Count(g.Offered, "call"))})
}

// limiting is the share of calls from which on the rate limit can show in the figures: those of p99.
const limiting = 0.01
