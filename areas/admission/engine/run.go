package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"tare/internal/files"
	"tare/internal/kit"
)

// startWithin bounds the start: an engine makes RSA keys, and reads the cluster.
const startWithin = 2 * time.Minute

// Config configures Run.
type Config struct {
	Engine       string // the name of a Kind
	Version      string
	Path         string // of the program
	Kubeconfig   string // of the administrator of the control plane
	Certificates string // folder with tls.crt and tls.key for 127.0.0.1
	// Audit is how often it looks at all that exists, itself or by its auditor; 0: never, and Kyverno writes no reports.
	Audit time.Duration
	// Network: Kyverno may ask name servers.
	Network bool
	Ports   Ports // those that it had before it was started afresh; 0: others
}

// Ports are those on which an engine listens.
type Ports struct {
	Webhooks, Other uint16 // the other one is for metrics, or for its health
}

// Ready says where an engine is.
type Ready struct {
	Webhooks string  // address at which the API server reaches it; what runs beside an engine has none
	Metrics  string  // URL; empty: it has none
	Seconds  float64 // until it was ready
	Ports    Ports
}

// Run is a child of tare that runs an engine as a child of its own until ctx ends.
func Run(ctx context.Context, c Config, ready func(Ready) error) error {
	k := Of(c.Engine)
	if k == nil {
		return fmt.Errorf("there is no engine %q", c.Engine)
	}
	ports := c.Ports
	if ports == (Ports{}) {
		free, err := kit.FreePorts(ctx, 2)
		if err != nil {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		ports = Ports{Webhooks: free[0], Other: free[1]}
	}
	webhooks, other := strconv.Itoa(int(ports.Webhooks)), strconv.Itoa(int(ports.Other))
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	p := kit.Program{
		Name: k.Name, Path: c.Path, Within: startWithin, At: []netip.AddrPort{netip.AddrPortFrom(loopback, ports.Other)},
	}
	out := Ready{Webhooks: "127.0.0.1:" + webhooks, Ports: ports}
	health := "http://127.0.0.1:" + other
	switch k {
	case Kyverno, kyvernoReports, kyvernoBackground:
		flags, err := kyvernoFlags(ctx, c.Path)
		if err != nil {
			return err
		}
		switch k {
		case Kyverno:
			p.Args, p.Env = kyvernoArguments(c, webhooks, other), kyvernoEnvironment(c, "admission")
		case kyvernoReports:
			p.Args, p.Env = kyvernoReportsArguments(c, other), kyvernoEnvironment(c, "reports")
		default:
			p.Args, p.Env = kyvernoBackgroundArguments(c, other), kyvernoEnvironment(c, "background")
		}
		if k != Kyverno {
			out.Webhooks = ""
		}
		p.Args = append(p.Args, flags...)
		health += "/metrics"
		out.Metrics = health
	case Gatekeeper:
		if c.Audit > 0 {
			folder, err := files.MakeLeaf(c.auditFolder()) // it is there after a restart
			if err != nil {
				return fmt.Errorf("make a folder for Gatekeeper's audit: %w", err)
			}
			defer folder.Close() //nolint:errcheck // nothing to lose
		}
		p.Args, p.Env = gatekeeperArguments(c, webhooks, other), gatekeeperEnvironment()
		health += "/readyz" // once it has what was in force before it started
	}
	client := &http.Client{Timeout: askWithin}
	defer client.CloseIdleConnections()
	healthy := func(ctx context.Context) error {
		if _, err := ask(ctx, client, health); err != nil || out.Webhooks == "" {
			return err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", out.Webhooks)
		if err != nil {
			return err
		}
		return conn.Close()
	}
	if out.Webhooks != "" {
		p.At = append(p.At, netip.AddrPortFrom(loopback, ports.Webhooks))
	}
	return p.Run(ctx, healthy, func(took time.Duration) error {
		out.Seconds = took.Seconds()
		return ready(out)
	})
}

const (
	askWithin = 5 * time.Second
	// mostMetrics bounds the metrics that are read, in bytes.
	mostMetrics = 64 << 20
)

// ask returns what a URL of an engine's answers.
func ask(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(a.Body, mostMetrics))
	if err = errors.Join(err, a.Body.Close()); err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("it answers %s", a.Status)
	}
	return text, err
}
