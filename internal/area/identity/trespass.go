package identity

import (
	"context"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/load"
)

var (
	_ area.Trespasser  = (*target)(nil)
	_ area.Conditioner = (*target)(nil)
)

// Trespasses implements area.Trespasser: the requests that Verify expects to be refused, made by every identity.
func (t *target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil, err
	}
	var out []load.Operation
	for _, c := range p.adapter.canaries(p.session("trespass")) {
		out = append(out, load.Operation{
			Name: c.name, Twin: p.operation, Expect: "must " + c.want(), Wire: &area.TrespassWire{
				Key:     func(i uint64) int { return int(i % uint64(p.identities)) },
				Append:  func(dst []byte, _ uint64) []byte { return append(dst, c.request...) },
				Refused: func(_ uint64, status int, body []byte) bool { return c.wasRefused(status, body) },
				// A good status is a grant, whatever the body holds: the caller was let in.
				Permitted: func(_ uint64, status int, _ []byte) bool { return status >= 200 && status < 300 },
			},
		})
	}
	return out, nil
}

// Conditions implements area.Conditioner: what can be done to the embedded endpoint.
func (t *target) Conditions(tr design.Treatment) []area.Condition {
	p, err := t.arms.Of(tr)
	if err != nil || p.url != nil {
		return nil
	}
	return []area.Condition{{
		Name: area.Restart, Does: "the endpoint's process is killed, and started again",
		Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, p.restart(ctx) },
	}}
}
