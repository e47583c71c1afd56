package kyverno_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// role is the environment variable by which this binary plays Kyverno.
const role = "TARE_TEST_KYVERNO"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		hosttest.Main(m)
	}
	if err := fake(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fake listens where the arguments say, and serves metrics.
func fake(args []string) error {
	at := map[string]string{}
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		at[name] = value
	}
	if os.Getenv("KYVERNO_NAMESPACE") != "kyverno" || at["kubeconfig"] == "" {
		return errors.New("it is not told where it is")
	}
	if at["kubeconfig"] == "/refused" {
		return errors.New("the cluster refuses me")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", at["webhookServerHost"]+":"+at["webhookServerPort"])
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "kyverno_policy_results_total{policy_name=\"a\",rule_result=\"fail\"} 2\n")
	})
	return http.ListenAndServe(at["metricsHost"]+":"+at["metricsPort"], nil) //nolint:gosec // it ends with its parent
}
