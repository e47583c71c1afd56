package decision

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"strings"

	"tare/areas/decision/engine"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/signature"
)

// startTimes are how long the decision point took to start and to load its policies.
type startTimes struct{ p *arm }

var _ probe.Probe = startTimes{}

// Subject implements probe.Probe.
func (startTimes) Subject() string { return subject }

// Read implements probe.Probe.
func (t startTimes) Read(context.Context) ([]metric.Sample, error) {
	sample := func(q probe.Quantity, v float64) metric.Sample {
		return metric.Sample{Subject: subject, Metric: q.Name, Value: v}
	}
	if c, _ := t.p.latest(); c != nil {
		return []metric.Sample{sample(probe.StartSeconds, c.seconds), sample(probe.LoadSeconds, c.ready.LoadSeconds)}, nil
	}
	if t.p.loaded != nil {
		return []metric.Sample{sample(probe.LoadSeconds, t.p.loading.Seconds())}, nil
	}
	return nil, nil
}

// Probes implements area.Target.
func (t *target) Probes(tr design.Treatment) []probe.Probe {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil
	}
	out := []probe.Probe{startTimes{p}, probe.PSI{}}
	if p.addr().Addr().IsLoopback() {
		out = append(out, probe.ListenQueue{Name: subject, Port: p.addr().Port()})
	}
	if p.url != nil {
		return append(out, p.attached...)
	}
	out = append(out, kit.Restartable{Name: subject, Now: func() probe.Probe {
		c, _ := p.latest()
		return probe.Process{Name: subject, PID: c.PID, StartTicks: c.StartTicks, Light: true}
	}})
	switch p.kind {
	case engine.ATT, engine.AuthzForce:
		out = append(out, kit.Restartable{Name: subject, Now: func() probe.Probe {
			c, _ := p.latest()
			return probe.JVM{Name: subject, PID: c.PID, StartTicks: c.StartTicks}
		}})
	case engine.Cedar:
		out = append(out, probe.Exposition{Name: subject, URL: "http://" + p.pdp.String() + "/metrics"})
	case engine.PDPX, engine.OPA, engine.OpenFGA:
	}
	return out
}

// attach finds the processes of a decision point behind a URL. Those that the file names must exist; others may be
// missing, and the report says so.
func (p *arm) attach(ctx context.Context) error {
	if p.url == nil {
		return nil
	}
	named := p.spec.Process
	var err error
	switch {
	case named != nil && named.Cgroup != "":
		err = p.attachGroup(named.Cgroup)
	case named != nil && named.PID != 0 && !isRunning(named.PID):
		err = fmt.Errorf("there is no process %d", named.PID) // a successor at the port would be another
	case named != nil:
		err = p.attachProcess(ctx, &probe.Attached{Name: subject, PID: named.PID, Port: p.portOf(named), Light: true})
	case p.addr().Addr().IsLoopback():
		err = p.attachProcess(ctx, &probe.Attached{Name: subject, Port: p.addr().Port(), Light: true})
		if err != nil {
			p.lost, err = err.Error(), nil
		}
	default:
		p.lost = "it is not on this host"
	}
	if err != nil {
		return fmt.Errorf("process: %w", err)
	}
	if p.spec.Metrics == nil {
		return nil
	}
	return p.attachMetrics(ctx)
}

// isRunning reports whether a process with that ID exists.
func isRunning(pid int) bool {
	_, err := probe.ByPID(pid)
	return err == nil
}

// attachMetrics reads the decision point's own endpoint of metrics once. Credentials go there only where it is the
// decision point itself, reached in the same way: https://pdp and http://pdp have one name.
func (p *arm) attachMetrics(ctx context.Context) error {
	m := p.spec.Metrics
	e := probe.Exposition{
		Name: subject, URL: m.URL, Series: m.Series, Process: len(p.attached) == 0,
		SkipJVM: len(p.attached) > 0,
	}
	if u, err := url.Parse(m.URL); err == nil && u.Host == p.url.Host && secure(u.Scheme) == secure(p.url.Scheme) {
		e.TLS = p.session.TLS
		e.Header = p.credentials()
	}
	if _, err := e.Read(ctx); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	p.attached = append(p.attached, e)
	return nil
}

// credentials returns the session's, as headers.
func (p *arm) credentials() http.Header {
	r := http.Request{Header: http.Header{}}
	switch s := p.session; {
	case s.Token != "":
		r.Header.Set("Authorization", "Bearer "+s.Token)
	case s.Username != "":
		r.SetBasicAuth(s.Username, s.Password)
	}
	return r.Header
}

// portOf returns where a successor of the named process would listen.
func (p *arm) portOf(named *Process) uint16 {
	switch {
	case named.Port != 0:
		return uint16(named.Port) //nolint:gosec // the schema bounds it
	case p.addr().Addr().IsLoopback():
		return p.addr().Port()
	}
	return 0
}

// attachProcess reads the process once, and its control group besides where that holds it alone.
func (p *arm) attachProcess(ctx context.Context, a *probe.Attached) error {
	if _, err := a.Read(ctx); err != nil {
		return err
	}
	p.attached = append(p.attached, a)
	pid := a.PID
	if pid == 0 {
		var err error
		if pid, _, err = probe.Listener(nil, netip.AddrPortFrom(netip.Addr{}, a.Port)); err != nil {
			return err
		}
	}
	if groups, err := probe.GroupOf(nil, pid); err == nil && len(groups) > 0 {
		p.attached = append(p.attached, probe.Cgroup{Name: subject, Paths: groups})
	}
	return nil
}

// groupRoot is where control groups are mounted.
const groupRoot = "/sys/fs/cgroup"

// attachGroup reads a control group, of v2 or of v1, by its path below the mount.
func (p *arm) attachGroup(name string) error {
	below := path.Clean("/" + strings.TrimPrefix(name, groupRoot))
	var dirs []string
	for _, controller := range []string{"", "cpu", "cpuacct", "memory"} {
		dir := path.Join(groupRoot, controller, below)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs = append(dirs, dir)
		}
	}
	switch {
	case below == "/":
		return errors.New("the root group holds this whole host, and us")
	case len(dirs) == 0:
		return fmt.Errorf("there is no control group %s below %s", below, groupRoot)
	}
	p.attached = append(p.attached, probe.Cgroup{Name: subject, Paths: dirs})
	return nil
}

// Observe reads what can tell a classifier of failures something: the listen queue as it is now. What cannot be read is
// absent.
func (t *target) Observe(ctx context.Context, tr design.Treatment) signature.Local {
	var local signature.Local
	p, err := t.arms.Of(tr)
	if err != nil || !p.addr().Addr().IsLoopback() {
		return local
	}
	local.ListenQueue = kit.QueueDepth(ctx, probe.ListenQueue{Name: subject, Port: p.addr().Port()})
	return local
}
