package reference

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"tare/internal/clock"
)

// probeTimeout is the kubelet's default (timeoutSeconds: 1), and that of the published DaemonSet.
const probeTimeout = time.Second

// Watch stands in for the kubelet's liveness probe: every period it asks /healthz at admin on a new connection, and
// after the given number of failures in a row calls restart. It must run outside the endpoint's CPU limit, as a kubelet
// does. It returns when ctx ends, or with the error of restart.
func Watch(ctx context.Context, c clock.Clock, k EndpointKnobs, admin func() string,
	restart func(context.Context) error,
) error {
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	failed := 0
	for c.Sleep(ctx, k.LivenessPeriod) == nil {
		if healthy(ctx, client, admin()) {
			failed = 0
			continue
		}
		if failed++; failed < k.LivenessFailures || ctx.Err() != nil {
			continue
		}
		failed = 0
		if err := restart(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("restart after %d failed liveness probes: %w", k.LivenessFailures, err)
		}
	}
	return nil
}

func healthy(ctx context.Context, client *http.Client, admin string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/healthz", nil)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	return err == nil && resp.StatusCode == http.StatusOK
}
