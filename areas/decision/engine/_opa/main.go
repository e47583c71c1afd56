// Command tare-opa is Open Policy Agent as a child process of tare: one line of JSON on standard input tells it what to
// serve, one line on standard output says that it serves, and it ends when standard input does.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/open-policy-agent/opa/v1/hooks"
	"github.com/open-policy-agent/opa/v1/runtime"
	"golang.org/x/sys/unix"
)

// config is the part of tare's engine.Config that OPA understands.
type config struct {
	Addr string `json:"addr"`
	File string `json:"file"`
	Own  bool   `json:"own"`  // File is a bundle
	V0   bool   `json:"v0"`   // its Rego is that of OPA before 1.0
	Path string `json:"path"` // at which a rule is asked
	// Check compiles the bundle, and says what is wrong in it, in place of serving.
	Check bool `json:"check"`
	// Prove says which rules of the bundle hold for one of the Bodies of requests to Path, or in a test of its own, in place
	// of serving.
	Prove  bool              `json:"prove"`
	Bodies []json.RawMessage `json:"bodies"`
	// Network lets the policies reach servers beyond loopback.
	Network bool `json:"network"`
	// Admin is the bearer token of who may change policies; empty: nobody may.
	Admin string `json:"admin"`
	// The faults that other engines can simulate.
	Answer string  `json:"answer"`
	Leak   float64 `json:"leak"`
	Delay  float64 `json:"delay"`
	Cache  float64 `json:"cache"`
	Gap    float64 `json:"gap"`
}

func main() {
	if err := run(bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tare-opa:", err)
		os.Exit(1)
	}
}

func run(in *bufio.Reader, out io.Writer) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read config from stdin: %w; this command is started by tare itself, not by hand", err)
	}
	var cfg config
	if err := json.Unmarshal(line, &cfg); err != nil {
		return fmt.Errorf("read config from stdin: %w", err)
	}
	if cfg.Answer != "" || cfg.Leak != 0 || cfg.Delay != 0 || cfg.Cache != 0 || cfg.Gap != 0 {
		return errors.New("no fault can be planted in OPA")
	}
	if !cfg.Network {
		stayOnLoopback()
	}
	if cfg.Check {
		return check(cfg, out)
	}
	if cfg.Prove {
		return prove(cfg, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends with the parent, however it dies
		cancel()
	}()
	return serve(ctx, cfg, out)
}

func serve(ctx context.Context, cfg config, out io.Writer) error {
	d, err := newDoor(cfg)
	if err != nil {
		return err
	}
	params := runtime.NewParams()
	params.Router, params.Hooks = d.routes, hooks.New(d)
	params.Addrs = &[]string{"127.0.0.1:0"} // it cannot share cfg.Addr, where its server listens later, too
	params.Paths, params.BundleMode = []string{cfg.File}, cfg.Own
	params.V0Compatible = cfg.V0
	params.EnableVersionCheck = false // it would call home
	params.GracefulShutdownPeriod = 1
	params.Logging = runtime.LoggingConfig{Level: "error", Format: "json"}
	params.Output = os.Stderr
	began := time.Now()
	rt, err := runtime.NewRuntime(ctx, params)
	if err != nil {
		return fmt.Errorf("load %s: %w", cfg.File, err)
	}
	served := make(chan error, 1)
	go func() { served <- rt.Serve(ctx) }()
	if err := await(ctx, rt, served); err != nil {
		return err
	}
	l, err := listen(ctx, cfg.Addr)
	if err != nil {
		return err
	}
	go func() {
		if err := d.server.Load().Serve(l); !errors.Is(err, http.ErrServerClosed) {
			served <- err
		}
	}()
	ready := map[string]any{"ready": map[string]any{
		"addr": l.Addr().String(), "load_seconds": time.Since(began).Seconds(),
	}}
	if err := json.NewEncoder(out).Encode(ready); err != nil {
		return fmt.Errorf("write ready line: %w", err)
	}
	if err := <-served; err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// listen listens where tare keeps a port bound, so that no other user gets it while a process is replaced.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, failed)
	}}
	return lc.Listen(ctx, "tcp", addr)
}

// await waits until the server answers, with its policies compiled.
func await(ctx context.Context, rt *runtime.Runtime, served <-chan error) error {
	for {
		select {
		case err := <-served:
			return errors.Join(errors.New("OPA ended before it served"), err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
		addrs := rt.Addrs()
		if len(addrs) == 0 {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addrs[0]+"/health", http.NoBody)
		if err != nil {
			return fmt.Errorf("ask for health: %w", err)
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
}
