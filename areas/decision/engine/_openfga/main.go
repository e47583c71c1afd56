// Command tare-openfga is OpenFGA as a child process of tare: one line of JSON on standard input tells it what to
// serve, one line on standard output says that it serves, and it ends when standard input does.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/openfga/openfga/cmd/run"
	"github.com/openfga/openfga/pkg/logger"
	settings "github.com/openfga/openfga/pkg/server/config"
)

// config is the part of tare's engine.Config that OpenFGA understands.
type config struct {
	Addr string `json:"addr"`
	File string `json:"file"` // with a store
	// Store is the store itself, in place of a file.
	Store *store `json:"store"`
	// Check writes the store, and says what is wrong in it, in place of serving.
	Check bool `json:"check"`
	// Prove says which relations of the model stand behind those that the bodies of requests ask for.
	Prove  bool              `json:"prove"`
	Bodies []json.RawMessage `json:"bodies"`
	// Token is what callers must know.
	Token string `json:"token"`
	// The faults that other engines can simulate.
	Answer string  `json:"answer"`
	Leak   float64 `json:"leak"`
	Delay  float64 `json:"delay"`
	Cache  float64 `json:"cache"`
	Gap    float64 `json:"gap"`
}

func main() {
	if err := start(bufio.NewReader(os.Stdin), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tare-openfga:", err)
		os.Exit(1)
	}
}

func start(in *bufio.Reader, out io.Writer) error {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read config from stdin: %w; this command is started by tare itself, not by hand", err)
	}
	var cfg config
	if err := json.Unmarshal(line, &cfg); err != nil {
		return errors.New("read config from stdin: malformed config") // the decoder's error may quote the token
	}
	if cfg.Answer != "" || cfg.Leak != 0 || cfg.Delay != 0 || cfg.Cache != 0 || cfg.Gap != 0 {
		return errors.New("no fault can be planted in OpenFGA")
	}
	if cfg.Token == "" && !cfg.Check && !cfg.Prove {
		return errors.New("no token: whoever knows none would be answered")
	}
	if cfg.Store == nil {
		text, err := os.ReadFile(cfg.File)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &cfg.Store); err != nil {
			return fmt.Errorf("read %s: %w", cfg.File, err)
		}
	}
	if cfg.Prove {
		return prove(cfg, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cfg.Check {
		return check(ctx, cancel, cfg, out)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // ends with the parent, however it dies
		cancel()
	}()
	return serve(ctx, cfg, out)
}

// serve runs OpenFGA as its own command does, with the store in memory, until ctx ends.
func serve(ctx context.Context, cfg config, out io.Writer) error {
	// The socket between its halves is made in the folder of temporary files, and its path must be short.
	dir, err := os.Open(filepath.Dir(cfg.File))
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it is only a folder
	if err := os.Setenv("TMPDIR", fmt.Sprintf("/proc/self/fd/%d", dir.Fd())); err != nil {
		return err
	}
	began := time.Now()
	s, err := launch(ctx, cfg)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return err
	}
	// It opens this socket last: from here on, it does not end for want of a port, and the token reaches nobody else.
	addr, err := s.listens(ctx, host)
	if err != nil {
		return err
	}
	wrong, ids, err := s.fill(ctx, cfg.Store)
	if err == nil && len(wrong) > 0 {
		err = errors.New(wrong[0].Says)
	}
	if err != nil {
		return fmt.Errorf("load %s: %w", cfg.File, err)
	}
	if err := s.await(ctx, addr); err != nil {
		return err
	}
	ready := map[string]any{"ready": map[string]any{
		"addr": addr, "load_seconds": time.Since(began).Seconds(), "store": ids.store, "model": ids.model,
	}}
	if err := json.NewEncoder(out).Encode(ready); err != nil {
		return fmt.Errorf("write ready line: %w", err)
	}
	if err := <-s.served; err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// check writes the store into a server of its own, and says what that refuses.
func check(ctx context.Context, end func(), cfg config, out io.Writer) error {
	cfg.Addr, cfg.Token = "127.0.0.1:0", rand.Text()
	s, err := launch(ctx, cfg)
	if err != nil {
		return err
	}
	found, _, err := s.fill(ctx, cfg.Store)
	end()
	<-s.served
	if err != nil {
		return err
	}
	if found == nil {
		found = []problem{}
	}
	return json.NewEncoder(out).Encode(map[string]any{"problems": found})
}

// A server is OpenFGA.
type server struct {
	token  string
	served chan error // why it ended; closed after that
}

// grpcHost is where OpenFGA's gRPC listens: an address of loopback other than that of its HTTP, by which their sockets
// are told apart.
const grpcHost = "127.0.0.2"

// launch starts OpenFGA on ports of loopback. What its command turns on by default and nobody asks for, its playground
// and its metrics, is off, and callers need the token.
func launch(ctx context.Context, cfg config) (*server, error) {
	s := &server{token: cfg.Token, served: make(chan error, 1)}
	c := settings.DefaultConfig()
	c.HTTP.Addr, c.GRPC.Addr = cfg.Addr, grpcHost+":0"
	c.HTTP.Enabled = !cfg.Check // which would need a socket in a folder of temporary files
	c.Playground.Enabled, c.Metrics.Enabled, c.Profiler.Enabled, c.Trace.Enabled = false, false, false, false
	c.Authn = settings.AuthnConfig{
		Method: "preshared", AuthnPresharedKeyConfig: &settings.AuthnPresharedKeyConfig{Keys: []string{cfg.Token}},
	}
	if err := c.Verify(); err != nil {
		return nil, err
	}
	log, err := logger.NewLogger(logger.WithLevel("error"), logger.WithFormat("json"), logger.WithOutputPaths("stderr"))
	if err != nil {
		return nil, err
	}
	go func() {
		s.served <- (&run.ServerContext{Logger: log}).Run(ctx, c)
		close(s.served)
	}()
	return s, nil
}

// await waits until the server answers over HTTP, too.
func (s *server) await(ctx context.Context, addr string) error {
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/healthz", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		if err := s.pause(ctx); err != nil {
			return err
		}
	}
}

// pause waits for a moment, in which the server must not end.
func (s *server) pause(ctx context.Context) error {
	select {
	case err := <-s.served:
		return errors.Join(errors.New("OpenFGA ended before it served"), err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(5 * time.Millisecond):
		return nil
	}
}

// listens waits until this process listens at an address of loopback, and returns it with the port. It asks its own
// sockets: any user of the host can listen at a port that OpenFGA was told and does not have yet, and would be sent the
// token.
func (s *server) listens(ctx context.Context, host string) (string, error) {
	for {
		own, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return "", err
		}
		for _, d := range own {
			fd, _ := strconv.Atoi(d.Name())
			on, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
			if err != nil || on == 0 {
				continue
			}
			name, _ := syscall.Getsockname(fd)
			if in, ok := name.(*syscall.SockaddrInet4); ok && net.IP(in.Addr[:]).String() == host {
				return net.JoinHostPort(host, strconv.Itoa(in.Port)), nil
			}
		}
		if err := s.pause(ctx); err != nil {
			return "", err
		}
	}
}
