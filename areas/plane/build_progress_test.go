package plane

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
)

// A stepper is a clock on which time passes when the test says so.
type stepper struct {
	now   time.Time
	steps chan struct{}
}

func (s *stepper) Now() time.Time { return s.now }

func (s *stepper) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.steps:
		s.now = s.now.Add(d)
		return nil
	}
}

// TestProgress: a line every 20 s says what is done, and none comes after the end.
func TestProgress(t *testing.T) {
	c, told := &stepper{steps: make(chan struct{})}, make(chan string)
	p := newProgress(V136, Host{Tell: func(line string) { told <- line }, Clock: c})
	stop := p.start(t.Context())
	next := func() string {
		c.steps <- struct{}{}
		return <-told
	}
	var got []string
	p.fetched("go: downloading k8s.io/kubernetes v1.36.3")
	p.fetched("go: downloading k8s.io/api v0.36.3")
	p.fetched("fresh")
	got = append(got, next())
	p.compiles(build.Packages{All: 2497, Stale: 1903})
	got = append(got, next())
	for range 412 {
		p.compiled("k8s.io/api/core/v1")
	}
	p.compiled("# a warning with spaces")
	p.compiled("")
	for range 2 {
		next()
	}
	got = append(got, next())
	p.compiled("tare/plane")
	got = append(got, next())
	p.compiles(build.Packages{All: 2497, Stale: 414})
	p.linking = false
	got = append(got, next())
	stop()
	want := []string{
		"fetching the Go modules of Kubernetes 1.36: 2 so far, 20s",
		"compiling Kubernetes 1.36: 0 of 1903 packages, 40s",
		"compiling Kubernetes 1.36: 412 of 1903 packages, 1m40s",
		"linking Kubernetes 1.36: 2m0s",
		"linking Kubernetes 1.36: 2m20s",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	select {
	case line := <-told:
		t.Errorf("told after the end: %q", line)
	case c.steps <- struct{}{}:
		t.Error("the clock is still waited for")
	default:
	}
}
