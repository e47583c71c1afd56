package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"tare/internal/kit"
)

const healthWithin = 60 * time.Second

// RunOPA is a child of tare that runs the opa found in PATH as a child of its own, with the policies in cfg.File, until
// ctx ends. It answers who has cfg.Pair. No fault can be planted in it.
func RunOPA(ctx context.Context, cfg Config, ready func(Ready) error) error {
	if cfg.Answer != "" || cfg.Leak != 0 || cfg.Delay != 0 || cfg.Cache != 0 || cfg.Gap != 0 {
		return errors.New("opa: no fault can be planted in it")
	}
	path, err := exec.LookPath("opa")
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	secure, err := cfg.Pair.TLS()
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	pair, err := cfg.Pair.file()
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	defer pair.Close() //nolint:errcheck // it is in memory
	addr, err := kit.FreePort(ctx, cfg.Addr)
	if err != nil {
		return fmt.Errorf("opa: %w", err)
	}
	bundle := cfg.File
	if !cfg.Own {
		bundle = filepath.Dir(cfg.File)
	}
	p := kit.Program{
		Name: "opa", Path: path, Args: opaArguments(addr, bundle), Files: []*os.File{pair}, Within: healthWithin,
	}
	if cfg.V0 {
		p.Args = append(p.Args, "--v0-compatible")
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: secure}}
	defer client.CloseIdleConnections()
	healthy := func(ctx context.Context) error { return checkHealth(ctx, client, addr) }
	return p.Run(ctx, healthy, func(took time.Duration) error {
		return ready(Ready{Addr: addr, LoadSeconds: took.Seconds()})
	})
}

// opaArguments serve a bundle to who has the pair: every user of the host can connect to the port, where OPA shows
// policies, data and counts, and runs queries that read files and ask servers with the rights of its own user. OPA's
// tokens would take a policy of their own, which it evaluates for each question.
func opaArguments(addr, bundle string) []string {
	const pair = "/proc/self/fd/3" // the first of kit.Program.Files
	return []string{
		"run", "--server", "--addr", addr, "--log-level", "error", "--disable-telemetry", "--authentication", "tls",
		"--tls-cert-file", pair, "--tls-private-key-file", pair, "--tls-ca-cert-file", pair, "--bundle", bundle,
	}
}

// checkHealth returns nil when the server answers: opa listens when its policies are compiled.
func checkHealth(ctx context.Context, client *http.Client, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr+"/health", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
