package plane

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// TestMain lets this test's own binary play a control plane: "MODE/tare-plane COMPONENT", where the folder's name says
// what is wrong with it.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && slices.Contains([]string{Etcd, APIServer, Scheduler, ControllerManager}, os.Args[1]) {
		f := fake{component: os.Args[1], mode: filepath.Base(filepath.Dir(os.Args[0])), dir: filepath.Dir(os.Args[0])}
		if err := f.run(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == "knock" {
		knock(os.Args[2:])
		return
	}
	if len(os.Args) == 3 && os.Args[1] == "hold" {
		if err := holdUntilKilled(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		return
	}
	hosttest.Main(m)
}

// fakeBinary is this binary under a path that names the mode.
func fakeBinary(t *testing.T, mode string) Binary {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), mode, "tare-plane")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return Binary{Path: path, Version: V136, Kubernetes: "v1.36.3", Etcd: "v3.6.8"}
}

// A fake is one component: it obeys its flags, serves what Start asks for, and fails as its mode says.
type fake struct {
	component, mode, dir string
	flags                map[string]string
}

func (f *fake) run() error {
	if f.mode == "garbage" {
		fmt.Println("I am no control plane")
		time.Sleep(time.Minute)
	}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var config struct{ Args []string }
	if err := json.Unmarshal(line, &config); err != nil {
		return err
	}
	f.flags = map[string]string{}
	for _, a := range config.Args {
		name, value, _ := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		f.flags[name] = value
	}
	fmt.Println(`{"ready":{}}`)
	return f.live(in)
}

func (f *fake) live(in io.Reader) error {
	switch {
	case f.mode == "dies" && f.component == APIServer:
		return errors.New("invalid value for flag --useless: it is of no use")
	case f.mode == "taken" && f.component == APIServer && f.first():
		return errors.New("failed to listen: bind: address already in use")
	case f.mode == "always-taken" && f.component == Etcd:
		f.first()
		return errors.New("listen tcp: bind: address already in use")
	case f.mode == "deaf" && f.component == ControllerManager:
		signal.Ignore(syscall.SIGTERM)
	}
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in)
		close(ended)
	}()
	l, err := f.listen()
	if err != nil {
		return err
	}
	if f.mode == "dies-later" && f.component == APIServer {
		defer os.Exit(0)
		go func() {
			for { // it dies when it is told to
				if _, err := os.Stat(filepath.Join(f.dir, "die")); err == nil {
					os.Exit(0)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	s := &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	go func() {
		<-ended
		_ = s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// first reports whether no process of this mode was here before, and leaves a mark for each.
func (f *fake) first() bool {
	file, err := os.OpenFile(filepath.Join(f.dir, "runs"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close() //nolint:errcheck // nothing that could be lost
	info, err := file.Stat()
	if err != nil {
		panic(err)
	}
	if _, err := file.WriteString("x"); err != nil {
		panic(err)
	}
	return info.Size() == 0
}

func (f *fake) listen() (net.Listener, error) {
	var lc net.ListenConfig
	if f.component == Etcd {
		file := strings.TrimPrefix(f.flags["listen-client-urls"], "unix://")
		// as etcd does: that of one that was killed is still there
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		syscall.Umask(0o077)
		return lc.Listen(context.Background(), "unix", file)
	}
	pair, err := tls.LoadX509KeyPair(f.flags["tls-cert-file"], f.flags["tls-private-key-file"])
	if err != nil {
		return nil, err
	}
	l, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(f.flags["bind-address"], f.flags["secure-port"]))
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), nil
}

// ServeHTTP answers as the components do: the server only to whom it knows.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.component == APIServer {
		tokens, err := os.ReadFile(f.flags["token-auth-file"])
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if err != nil || token == "" || !strings.HasPrefix("\n"+string(tokens), "\n"+token+",tare-admin,") {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
	}
	known := map[string][]string{
		APIServer: {
			"/readyz", "/api/v1/namespaces/default", "/api/v1/namespaces/kube-node-lease",
			"/api/v1/namespaces/default/serviceaccounts/default",
		},
		Scheduler: {"/readyz"}, ControllerManager: {"/healthz"},
	}
	switch {
	case (f.mode == "hangs" || f.mode == "always-taken") && f.component == APIServer:
		http.Error(w, "[+]ping ok\n[-]poststarthook/rbac/bootstrap-roles failed: not finished\nreadyz check failed",
			http.StatusInternalServerError)
	case !slices.Contains(known[f.component], r.URL.Path):
		http.NotFound(w, r)
	}
}
