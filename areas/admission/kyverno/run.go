package kyverno

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"tare/internal/kit"
)

// Namespace is where Kyverno keeps what is its own: certificates, settings, its lease.
const Namespace = "kyverno"

// startWithin bounds the start: it makes two RSA keys, and reads the cluster.
const startWithin = 2 * time.Minute

// Config configures Run.
type Config struct {
	Path       string // of the program
	Kubeconfig string // of the administrator of the control plane
}

// Ready says where Kyverno is.
type Ready struct {
	Metrics string  // URL
	Seconds float64 // until it was ready
}

// Run is a child of tare that runs Kyverno as a child of its own until ctx ends.
func Run(ctx context.Context, c Config, ready func(Ready) error) error {
	var ports []string
	for range 2 {
		addr, err := kit.FreePort(ctx, "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("kyverno: %w", err)
		}
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return fmt.Errorf("kyverno: %w", err)
		}
		ports = append(ports, port)
	}
	p := kit.Program{
		Name: "kyverno", Path: c.Path, Args: arguments(c.Kubeconfig, ports[0], ports[1]), Env: environment(),
		Within: startWithin,
	}
	out := Ready{Metrics: "http://127.0.0.1:" + ports[1] + "/metrics"}
	client := &http.Client{Timeout: askWithin}
	defer client.CloseIdleConnections()
	healthy := func(ctx context.Context) error {
		if _, err := ask(ctx, client, out.Metrics); err != nil {
			return err
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+ports[0])
		if err != nil {
			return err
		}
		return conn.Close()
	}
	return p.Run(ctx, healthy, func(took time.Duration) error {
		out.Seconds = took.Seconds()
		return ready(out)
	})
}

// arguments are those of its chart, on loopback, and without what only its other controllers read: reports.
func arguments(kubeconfig, webhooks, metrics string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--serverIP=127.0.0.1:" + webhooks, "--webhookServerHost=127.0.0.1", "--webhookServerPort=" + webhooks,
		"--caSecretName=kyverno-svc.kyverno.svc.kyverno-tls-ca",
		"--tlsSecretName=kyverno-svc.kyverno.svc.kyverno-tls-pair",
		"--backgroundServiceAccountName=system:serviceaccount:kyverno:kyverno-background-controller",
		"--reportsServiceAccountName=system:serviceaccount:kyverno:kyverno-reports-controller",
		"--controllerRuntimeMetricsAddress=0", "--metricsHost=127.0.0.1", "--metricsPort=" + metrics,
		"--admissionReports=false", "--generateValidatingAdmissionPolicy=true",
		"--omitEvents=PolicyApplied,PolicySkipped", "--v=2", "--disableLogColor=true",
	}
}

// environment is what its deployment sets.
func environment() []string {
	return []string{
		"KYVERNO_NAMESPACE=" + Namespace, "KYVERNO_SERVICEACCOUNT_NAME=kyverno-admission-controller",
		"KYVERNO_ROLE_NAME=kyverno:admission-controller", "KYVERNO_DEPLOYMENT=kyverno-admission-controller",
		"KYVERNO_POD_NAME=kyverno-0", "KYVERNO_SVC=kyverno-svc", "INIT_CONFIG=kyverno", "METRICS_CONFIG=kyverno-metrics",
	}
}

const (
	askWithin = 5 * time.Second
	// mostMetrics bounds the metrics that are read, in bytes.
	mostMetrics = 64 << 20
)

// ask reads the metrics.
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
