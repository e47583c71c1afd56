package plane

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"tare/internal/build"
)

// tellEvery is the time between two lines about a build.
const tellEvery = 20 * time.Second

// A progress counts the packages and modules in a build's output.
type progress struct {
	host    Host
	of      Version
	began   time.Time
	telling sync.Mutex // one line at a time

	mu       sync.Mutex
	modules  int // fetched
	packages int // compiled
	counted  bool
	stale    int // packages to be compiled
	linking  bool
}

func newProgress(v Version, h Host) *progress {
	return &progress{host: h, of: v, began: h.clock().Now()}
}

// start reports progress until stop is called or ctx ends.
func (p *progress) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() {
		for p.host.clock().Sleep(ctx, tellEvery) == nil {
			p.tell(p.line())
		}
	})
	return func() { cancel(); told.Wait() }
}

func (p *progress) tell(line string) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.host.tell(line)
}

// fetched counts a message about a module.
func (p *progress) fetched(line string) {
	if strings.HasPrefix(line, "go: downloading ") {
		p.mu.Lock()
		p.modules++
		p.mu.Unlock()
	}
}

// compiles sets the number of packages to compile.
func (p *progress) compiles(n build.Packages) {
	p.mu.Lock()
	p.counted, p.stale = true, n.Stale
	p.mu.Unlock()
}

// compiled counts a package; the last one is tare's own.
func (p *progress) compiled(line string) {
	if line == "" || strings.Contains(line, " ") {
		return
	}
	p.mu.Lock()
	p.packages++
	p.linking = p.linking || strings.HasPrefix(line, "tare/")
	p.mu.Unlock()
}

// line describes how far the build is.
func (p *progress) line() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.host.clock().Now().Sub(p.began).Round(time.Second)
	switch {
	case !p.counted:
		return fmt.Sprintf("fetching the Go modules of Kubernetes %s: %d so far, %s", p.of, p.modules, at)
	case p.linking || p.packages >= p.stale-1: // where Go has compiled tare's own package before, it does not name it
		return fmt.Sprintf("linking Kubernetes %s: %s", p.of, at)
	}
	return fmt.Sprintf("compiling Kubernetes %s: %d of %d packages, %s", p.of, p.packages, p.stale, at)
}
