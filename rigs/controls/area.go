package controls

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
)

// Area is one control as an area, so that tare's own run measures it.
type Area struct{ Control Control }

var _ area.Area = Area{}

// Name implements area.Area, as do the others.
func (Area) Name() string                                        { return "controls" }
func (Area) Offers() area.Offers                                 { return offers }
func (Area) NewSpec() area.Spec                                  { return spec{} }
func (Area) Undo(context.Context, []area.Change, area.Env) error { return nil }

func (Area) Preflight(context.Context, area.Spec, area.Env) []area.Finding { return nil }

// Open implements area.Area.
func (a Area) Open(context.Context, area.Spec, area.Env) (area.Target, error) {
	s, err := a.Control.Start()
	if err != nil {
		return nil, err
	}
	return &target{server: s}, nil
}

// Parts implements area.Area.
func (Area) Parts() area.Parts { return area.Parts{} }

// Can implements area.Target.
func (t *target) Can() area.Can {
	return area.Can{Endpoint: t.Endpoint, Trespass: t.Trespasses, Conditions: t.Conditions}
}

var offers = area.Offers{AnyRate: area.Yes, Trespasses: area.Yes}

type spec struct{}

func (spec) Validate(area.Asked, []area.Treatment) []area.Finding { return nil }
func (s spec) Under(area.Treatment) (area.Spec, error)            { return s, nil }
func (spec) Says() area.Says {
	return area.Says{Loopback: true, Conditions: []string{area.Restart, area.Reload, area.Slow, area.Partition}}
}

// target is a running control.
type target struct{ server *Server }

var _ area.Target = (*target)(nil)

func (*target) Prepare(context.Context, design.Treatment, area.Journal) error { return nil }
func (*target) Enter(context.Context, design.Treatment) error                 { return nil }
func (*target) Verify(context.Context, design.Treatment) error                { return nil }
func (*target) Leave(context.Context, design.Treatment) error                 { return nil }
func (*target) Probes(design.Treatment) []probe.Probe                         { return nil }
func (*target) Notes() []string                                               { return nil }
func (t *target) Close(context.Context) error                                 { return t.server.Close() }

func (t *target) Endpoint(design.Treatment) (*load.Endpoint, error) {
	addr, err := netip.ParseAddrPort(t.server.Addr)
	return &load.Endpoint{Addr: addr, Host: t.server.Addr, Keys: 1}, err
}

func (*target) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "read", Weight: 1, Wire: read{}}}, nil
}

func (*target) Trespasses(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{Name: "read without right", Twin: "read", Weight: 1, Wire: &trespassWire{
		Append:  func(dst []byte, i uint64) []byte { return ask(dst, i, "not") },
		Refused: func(_ uint64, status int, body []byte) bool { return status == 200 && bytes.Contains(body, refused) },
		Permitted: func(_ uint64, status int, body []byte) bool {
			return status == 200 && bytes.Contains(body, allowed)
		},
	}, Describe: func(i uint64, status int, body []byte) (string, string) {
		return fmt.Sprintf("read as caller %d without right", i), fmt.Sprintf("%d %s", status, bytes.TrimSpace(body))
	}}}, nil
}

var allowed, refused = []byte(`"allowed":true`), []byte(`"allowed":false`)

// Conditions is area.Can.Conditions.
func (t *target) Conditions(design.Treatment) []area.Condition {
	at := func(name string, begin, end func()) area.Condition {
		c := area.Condition{Name: name, Does: name, Hold: time.Second}
		c.Impose = func(context.Context) (func(context.Context) error, error) {
			begin()
			if end == nil {
				return nil, nil
			}
			return func(context.Context) error { end(); return nil }, nil
		}
		return c
	}
	return []area.Condition{
		at(area.Restart, t.server.Restart, nil),
		at(area.Reload, func() {
			for range 5 {
				t.server.Reload()
				time.Sleep(time.Second / 2)
			}
		}, nil),
		at(area.Slow, func() { t.server.Slow(8 * time.Millisecond) }, func() { t.server.Slow(0) }),
		at(area.Partition, func() { t.server.Cut(true) }, func() { t.server.Cut(false) }),
	}
}

// read is the call that must be permitted. Its answer names the call.
type read struct{}

func (read) ConnKey(uint64) int                 { return 0 }
func (read) Explain(uint64, int, []byte) int    { return -1 }
func (read) Render(dst []byte, i uint64) []byte { return ask(dst, i, "yes") }

func (read) Check(i uint64, status int, body []byte) load.Outcome {
	switch {
	case status == 503:
		return load.Refused
	case status != 200:
		return load.Failed
	case !bytes.Contains(body, allowed):
		return load.Wrong
	}
	var buf [40]byte
	if !bytes.Contains(body, append(strconv.AppendUint(append(buf[:0], `"call":`...), i, 10), ',')) {
		return load.Wrong // the answer to another call
	}
	return load.OK
}

// ask renders a request; both words of right have the same length.
func ask(dst []byte, i uint64, right string) []byte {
	dst = append(dst, "GET /read?call="...)
	dst = strconv.AppendUint(dst, i, 10)
	dst = append(dst, "&right="...)
	dst = append(dst, right...)
	return append(dst, " HTTP/1.1\r\nHost: target\r\n\r\n"...)
}

// A trespassWire makes requests that must be refused, and judges their answers.
type trespassWire struct {
	Append func(dst []byte, i uint64) []byte
	// Refused and Permitted say what an answer means. An answer that is neither decides nothing: it is Refused (shed) with
	// status 429 or 503, Failed with another 5xx, else Wrong.
	Refused, Permitted func(i uint64, status int, body []byte) bool
}

var _ load.Wire = (*trespassWire)(nil)

// Explain implements load.Wire.
func (*trespassWire) Explain(uint64, int, []byte) int { return -1 }

// ConnKey implements load.Wire.
func (*trespassWire) ConnKey(uint64) int { return 0 }

// Render implements load.Wire.
func (w *trespassWire) Render(dst []byte, i uint64) []byte { return w.Append(dst, i) }

// Check implements load.Wire.
func (w *trespassWire) Check(i uint64, status int, body []byte) load.Outcome {
	switch {
	case w.Refused(i, status, body):
		return load.Denied
	case w.Permitted(i, status, body):
		return load.Permitted
	case status == 429 || status == 503:
		return load.Refused
	case status >= 500:
		return load.Failed
	}
	return load.Wrong
}
