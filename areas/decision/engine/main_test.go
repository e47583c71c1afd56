package engine_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

	"golang.org/x/sys/unix"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// role makes the test binary something else than the tests.
const role = "TARE_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "":
		hosttest.Main(m)
	case "opa":
		err = fakeOPA(os.Args[1:])
	case "supervisor":
		err = proc.Serve(context.Background(), os.Stdin, os.Stdout, func(ctx context.Context, raw json.RawMessage,
			ready func(any) error,
		) error {
			var cfg engine.Config
			if err := json.Unmarshal(raw, &cfg); err != nil {
				return err
			}
			return engine.RunOPA(ctx, cfg, func(r engine.Ready) error { return ready(r) })
		})
	case "stranger":
		err = requestAsStranger(os.Args[1], os.Args[2], os.Args[3])
	case "narrow":
		err = runWithOnePort(os.Args[1])
	case "parent":
		err = runParent(engine.Kind(os.Args[1]), os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// onePort is the only one that runWithOnePort's network gives to servers.
const onePort = 40001

// runWithOnePort becomes a program, in a network of its own whose kernel gives clients even ports, and servers one.
func runWithOnePort(program string) error {
	fd, err1 := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	lo, err2 := unix.NewIfreq("lo")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	const sysctl = "/proc/sys/net/ipv4/"
	return errors.Join(unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo),
		os.WriteFile(sysctl+"ip_local_port_range", fmt.Appendf(nil, "%d %d", onePort-1, onePort+6), 0o600),
		os.WriteFile(sysctl+"ip_local_reserved_ports", fmt.Appendf(nil, "%d,%d,%d", onePort+2, onePort+4, onePort+6), 0o600),
		unix.Exec(program, []string{program}, os.Environ()))
}

// fakeOPA is a fake of opa with the commands that RunOPA uses.
func fakeOPA(args []string) error {
	if slices.Equal(args, []string{"version"}) {
		_, err := fmt.Println("Version: 9.8.7\nBuild Commit: none")
		return err
	}
	if len(args) < 2 || args[len(args)-2] != "--bundle" {
		return fmt.Errorf("%q: not served as a bundle, so that anybody could change the policies", args)
	}
	of := map[string]string{}
	for i, a := range args[1:] {
		of[args[i]] = a
	}
	policies, err := os.ReadFile(filepath.Join(of["--bundle"], "policies.rego"))
	if err != nil {
		return err
	}
	if !strings.HasPrefix(string(policies), "package ") {
		return errors.New("rego_parse_error: package expected")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", of["--addr"])
	if err != nil {
		return err
	}
	if of["--authentication"] == "tls" {
		pair, err := tls.LoadX509KeyPair(of["--tls-cert-file"], of["--tls-private-key-file"])
		if err != nil {
			return err
		}
		callers, err := os.ReadFile(of["--tls-ca-cert-file"])
		if err != nil {
			return err
		}
		c := &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: x509.NewCertPool(),
		}
		c.ClientCAs.AppendCertsFromPEM(callers)
		l = tls.NewListener(l, c)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, os.Getpid()) // the test asks who it is
	})}
	go func() { <-ctx.Done(); _ = srv.Close() }()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// requestAsStranger sends one request and prints the status and the body of the answer.
func requestAsStranger(method, url, body string) error {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	anybody := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	resp, err := (&http.Client{Transport: anybody}).Do(req)
	if err != nil {
		fmt.Print("no answer: ", err)
		return nil
	}
	defer func() { _ = resp.Body.Close() }() // read to its end below
	text, err := io.ReadAll(resp.Body)
	fmt.Printf("%d %s", resp.StatusCode, text)
	return err
}

// runParent starts a decision point, prints its PID and waits to be killed.
func runParent(k engine.Kind, dir string) error {
	ctx := context.Background()
	l, err := engine.Find(ctx, k, engine.Host{Self: os.Args[0], Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv})
	if err != nil {
		return err
	}
	cfg, err := l.Prepare(dir, model.Set{N: 1})
	if err != nil {
		return err
	}
	cfg.Token = testToken
	child, err := proc.Start(ctx, proc.Spec{
		Name: string(k), Path: l.Path, Args: l.Args, Config: cfg, LogFile: filepath.Join(dir, "log"),
		ReadyWithin: 5 * time.Minute,
	})
	if err != nil {
		return err
	}
	fmt.Println(child.PID)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
