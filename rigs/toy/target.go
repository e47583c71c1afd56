package toy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/proc"
)

// operation is the name of what both areas do.
const operation = "play"

// target is a server, or a child for each treatment.
type target struct {
	spec *Spec
	env  area.Env

	mu       sync.Mutex
	children map[string]*child
}

// A child is a server of the toy's own, and its address.
type child struct {
	*kit.Process
	URL string
}

// Prepare implements area.Target, as do the others.
func (t *target) Prepare(ctx context.Context, tr area.Treatment, j area.Journal) error {
	if t.spec.under(tr).URL != "" {
		return nil
	}
	takes, err := work(tr)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &child{}
	c.Process, err = kit.StartProcess(ctx, j, areaName, fmt.Sprint(serverName, "-", len(t.children)), proc.Spec{
		Name: serverName, Path: t.env.Self, Args: []string{"serve", areaName, serverName}, Config: serverConfig{takes},
		LogFile: t.env.LogFile(serverName, len(t.children)), CPUs: t.env.CPUs,
	}, &c.URL)
	if err == nil {
		t.children[tr.ID] = c
	}
	return err
}

// address returns the address of a treatment's server.
func (t *target) address(tr area.Treatment) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.children[tr.ID]; c != nil {
		return c.URL
	}
	return t.spec.under(tr).URL
}

// Verify implements area.Target: a call with the right is answered, one without is not.
func (t *target) Verify(ctx context.Context, tr area.Treatment) error {
	for right, want := range map[string]int{"yes": http.StatusOK, "no": http.StatusForbidden} {
		status, err := get(ctx, t.address(tr)+path, map[string]string{"X-Right": right})
		if err != nil {
			return err
		}
		if status != want {
			return fmt.Errorf("GET %s with right %q: status %d, want %d", path, right, status, want)
		}
	}
	return nil
}

// Operations implements area.Target.
func (t *target) Operations(tr area.Treatment) ([]area.Operation, error) {
	wire, err := t.wire(tr, "yes")
	return []area.Operation{{Name: operation, Weight: 1, Expect: "status 200", Wire: wire}}, err
}

// Close implements area.Target.
func (t *target) Close(ctx context.Context) error {
	var errs []error
	for _, c := range t.children {
		errs = append(errs, c.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Can implements area.Target.
func (t *target) Can() area.Can {
	return area.Can{
		Endpoint: func(tr area.Treatment) (*area.Endpoint, error) {
			u, err := url.Parse(t.address(tr))
			if err != nil {
				return nil, err
			}
			addr, err := kit.ResolveHost(context.Background(), u)
			return &area.Endpoint{Addr: addr, Host: u.Host, Keys: 1}, err
		},
		Notes: func() []string { return []string{"this is a toy"} },
		Warnings: func() []string {
			if t.spec.URL == "" {
				return nil
			}
			return []string{"a server of yours may be no toy"}
		},
		Trespass: func(tr area.Treatment) ([]area.Operation, error) {
			wire, err := t.wire(tr, "no")
			return []area.Operation{{
				Name: operation + " without right", Twin: operation, Weight: 1, Expect: "status 403",
				Wire: wire,
			}}, err
		},
		Conditions: func(tr area.Treatment) []area.Condition {
			if t.spec.under(tr).URL != "" {
				return nil
			}
			slow := func(ctx context.Context, by time.Duration) error {
				_, err := get(ctx, t.address(tr)+slower+by.String(), nil)
				return err
			}
			return []area.Condition{{
				Name: area.Slow, Does: "each call takes 20 ms longer", Hold: time.Second,
				Impose: func(ctx context.Context) (func(context.Context) error, error) {
					return func(ctx context.Context) error { return slow(ctx, 0) }, slow(ctx, 20*time.Millisecond)
				},
			}}
		},
	}
}

// get returns the status of a GET request.
func get(ctx context.Context, address string, header map[string]string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return 0, err
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// wire returns the calls of a treatment, with or without the right.
func (t *target) wire(tr area.Treatment, right string) (area.Wire, error) {
	u, err := url.Parse(t.address(tr))
	if err != nil {
		return nil, err
	}
	key, err := t.spec.Key.Resolve(t.env.Getenv)
	if err != nil {
		return nil, err
	}
	return wire{right: right, text: "GET " + path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nX-Right: " + right +
		"\r\nX-Key: " + key + "\r\nX-Call: "}, nil
}

// A wire is the calls with or without the right.
type wire struct {
	area.Unexplained
	right, text string
}

// ConnKey implements area.Wire, as do the others.
func (wire) ConnKey(uint64) int { return 0 }

func (w wire) Render(dst []byte, i uint64) []byte {
	return append(strconv.AppendUint(append(dst, w.text...), i, 10), "\r\n\r\n"...)
}

func (w wire) Check(_ uint64, status int, _ []byte) area.Outcome {
	switch {
	case status == http.StatusServiceUnavailable:
		return area.Refused
	case w.right == "no" && status == http.StatusForbidden:
		return area.Denied
	case w.right == "no" && status == http.StatusOK:
		return area.Permitted
	case status == http.StatusOK:
		return area.OK
	}
	return area.Failed
}

// timer is the target of Timer.
type timer struct {
	spec    *TimerSpec
	env     area.Env
	change  area.Change
	journal area.Journal
	batches atomic.Uint64 // done so far
}

// Prepare implements area.Target, as do the others.
func (t *timer) Prepare(_ context.Context, _ area.Treatment, j area.Journal) error {
	if t.journal != nil {
		return nil
	}
	t.journal = j
	dir := filepath.Join(os.TempDir(), folderPrefix+t.env.Run)
	t.change = area.Change{Area: timerName, Kind: "folder", ID: t.env.Run, Data: map[string]string{"path": dir}}
	if err := j.Intend(t.change); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

func (t *timer) Verify(context.Context, area.Treatment) error {
	_, err := os.Stat(t.change.Data["path"])
	return err
}

func (t *timer) Operations(tr area.Treatment) ([]area.Operation, error) {
	takes, err := work(tr)
	return []area.Operation{{
		Name: operation, Weight: 1, Expect: "time passes", Rounds: t.spec.Rounds,
		Batch: func(_ context.Context, n int) ([]area.BatchSample, error) {
			for range n {
				time.Sleep(takes)
			}
			return []area.BatchSample{{Metric: "wall", Value: takes.Seconds() * (1 + jitter(t.batches.Add(1)))}}, nil
		},
	}}, err
}

// jitter is what the i-th batch differs by from the time that it was asked for: within 0.4 %, so that no host makes the
// baseline differ from itself by half of a margin of 2 %.
func jitter(i uint64) float64 { return float64(i*37%101)/101*0.008 - 0.004 }

func (t *timer) Close(context.Context) error {
	if t.journal == nil {
		return nil
	}
	if err := removeFolder(t.change); err != nil {
		return err
	}
	return t.journal.Undone(t.change)
}

func (*timer) Can() area.Can { return area.Can{} }
