package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// role is the environment variable by which this binary plays an engine, and flags the one with its help.
const (
	role  = "TARE_TEST_ENGINE"
	flags = "TARE_TEST_FLAGS"
)

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		hosttest.Main(m)
	}
	if slices.Contains(os.Args, "-help") {
		fmt.Print(os.Getenv(flags))
		os.Exit(0)
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
	host, webhooks, health := at["webhookServerHost"], at["webhookServerPort"], at["metricsHost"]+":"+at["metricsPort"]
	switch {
	case os.Getenv(flags) != "" || at["host"] != "":
	case host+at["metricsHost"]+at["controllerRuntimeMetricsAddress"] != "":
		return errors.New("it is given flags that it does not have")
	default: // as its edits have it
		host, health = "127.0.0.1", "127.0.0.1"+health
	}
	switch {
	case at["kubeconfig"] == "":
		return errors.New("it is not told where the cluster is")
	case os.Getenv("POD_NAMESPACE") == "gatekeeper-system" && at["cert-dir"] == "/certificates":
		host, webhooks, health = at["host"], at["port"], at["health-addr"]
	case os.Getenv("KYVERNO_NAMESPACE") != "kyverno":
		return errors.New("it is not told where it is")
	case (os.Getenv("TARE_NETWORK") != "") != (at["kubeconfig"] == "/network"):
		return errors.New("it may ask name servers, or not, against what was said")
	case (os.Getenv("KYVERNO_DEPLOYMENT") == "kyverno-reports-controller") != (at["backgroundScanInterval"] == "15s"):
		return errors.New("it is not told how often it scans, or another controller is")
	}
	if at["kubeconfig"] == "/refused" {
		return errors.New("the cluster refuses me")
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", host+":"+webhooks)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `kyverno_policy_results_total{resource_namespace="n",policy_name="a",rule_result="fail"} 2`+"\n")
	})
	return http.ListenAndServe(health, nil) //nolint:gosec // it ends with its parent
}
