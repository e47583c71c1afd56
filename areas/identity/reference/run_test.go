package reference

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tare/internal/clock"
	"tare/rigs/hosttest"
)

// TestMain: every goroutine has an owner that waits for it.
func TestMain(m *testing.M) { goleak.VerifyTestMain(hosttest.Sharing(m)) }

// A pair is a running STS and endpoint.
type pair struct {
	t        *testing.T
	signer   *Signer
	sts, end Ready
}

func start(t *testing.T, k Knobs, adjust func(*EndpointConfig)) *pair {
	t.Helper()
	signer, err := NewSigner(k.Signing)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	private, err := signer.Private()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, signer: signer}
	p.sts = p.run(func(ctx context.Context, ready func(Ready) error) error {
		return runSTS(ctx, clock.System{}, STSConfig{
			Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", TrustedKey: public,
			STSKnobs: k.STSKnobs,
		}, ready)
	})
	cfg := EndpointConfig{
		Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", STS: "http://" + p.sts.Addr, SigningKey: private, Seed: 1,
		EndpointKnobs: k.EndpointKnobs,
	}
	if adjust != nil {
		adjust(&cfg)
	}
	p.end = p.run(func(ctx context.Context, ready func(Ready) error) error {
		return runEndpoint(ctx, clock.System{}, cfg, ready)
	})
	return p
}

// run runs a server until the test ends, and fails the test if it ends with an error.
func (p *pair) run(serve func(context.Context, func(Ready) error) error) Ready {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	readies, ended := make(chan Ready, 1), make(chan error, 1)
	go func() {
		ended <- serve(ctx, func(r Ready) error { readies <- r; return nil })
	}()
	select {
	case r := <-readies:
		p.t.Cleanup(func() {
			cancel()
			select {
			case err := <-ended:
				if err != nil {
					p.t.Errorf("the server ended with %v", err)
				}
			case <-time.After(20 * time.Second):
				p.t.Error("the server does not end")
			}
		})
		return r
	case err := <-ended:
		cancel()
		p.t.Fatalf("the server did not start: %v", err)
	}
	return Ready{}
}

// get sends the endpoint a workload's request.
func (p *pair) get(path string, header ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+p.end.Addr+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if len(header) == 0 {
		header = []string{"Metadata-Flavor", "Google"}
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	c := http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// readCounters reads the counters at an admin address.
func readCounters(t *testing.T, addr string) Counters {
	t.Helper()
	a := NewAdmin(addr)
	defer a.Close()
	c, err := a.Counters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAdminAddressRejectsOtherUsers: every user of the host can connect to it, and must neither empty the cache nor
// read the counters.
func TestAdminAddressRejectsOtherUsers(t *testing.T) {
	p := healthyPair(t, nil)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, admin := range []string{p.end.Admin, p.sts.Admin} {
		addr, secret, _ := strings.Cut(admin, "/")
		if len(secret) < 20 {
			t.Fatalf("%q has no secret", admin)
		}
		for _, x := range []struct{ method, path string }{
			{"GET", "/debug"},
			{"POST", "/flush"},
			{"GET", "/healthz"},
			{"GET", "/" + secret[1:] + "/debug"},
		} {
			req, err := http.NewRequestWithContext(t.Context(), x.method, "http://"+addr+x.path, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s: status %d", x.method, x.path, resp.StatusCode)
			}
		}
	}
}
