package reference

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/clock"
	"tare/internal/proc"
)

// accountsPath is where the metadata protocol keeps service accounts
// (https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys).
const accountsPath = "/computeMetadata/v1/instance/service-accounts/"

// metadata answers the GCE metadata protocol.
type metadata struct {
	knobs    EndpointKnobs
	cache    *cache
	exchange *Exchanger
	ledger   *ledger
	throttle *proc.Throttle // nil: none
	clock    clock.Clock
	inside   *gate

	requests, inFlight, dropped, unavailable, overQuota, failed atomic.Int64

	mu    sync.Mutex
	rng   *rand.Rand
	known map[netip.Addr]time.Time // first request of each identity
}

// ServeHTTP implements http.Handler.
func (m *metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !m.inside.enter() {
		return
	}
	defer m.inside.leave()
	h := w.Header()
	// the server's own spelling too, so that clients can tell it is a metadata server
	h["Metadata-Flavor"] = []string{"Google"}
	h["Server"] = []string{"GKE Metadata Server"}
	if refused(w, r) {
		return
	}
	m.requests.Add(1)
	m.inFlight.Add(1)
	defer m.inFlight.Add(-1)
	if m.drop() {
		m.dropped.Add(1)
		<-r.Context().Done()
		return
	}
	if m.throttle != nil {
		if err := m.throttle.Do(r.Context(), m.ledger.pay); err != nil {
			return // the client has left
		}
	} else {
		m.ledger.pay()
	}
	caller := source(r)
	if m.young(caller) {
		m.unavailable.Add(1)
		http.Error(w, "The metadata server is not ready for this workload yet.", http.StatusServiceUnavailable)
		return
	}
	m.answer(w, r, WorkloadOf(caller))
}

// refused answers requests that do not come from a workload itself: those that a web page or a proxy could have been
// tricked into.
func refused(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		http.Error(w, "Only GET is allowed.", http.StatusMethodNotAllowed)
	case r.Header.Get("Metadata-Flavor") != "Google":
		http.Error(w, "Missing Metadata-Flavor:Google header.", http.StatusForbidden)
	case len(r.Header.Values("X-Forwarded-For")) > 0:
		http.Error(w, "Request contains X-Forwarded-For header.", http.StatusForbidden)
	default:
		return false
	}
	return true
}

func source(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{} // not from TCP: the identity of nobody
	}
	return ap.Addr().Unmap()
}

func (m *metadata) drop() bool {
	if m.knobs.Drop == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rng.Float64() < m.knobs.Drop
}

// young reports whether the caller's first request was less than UnavailableFirst ago.
func (m *metadata) young(caller netip.Addr) bool {
	if m.knobs.UnavailableFirst == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clock.Now()
	first, ok := m.known[caller]
	if !ok {
		first = now
		m.known[caller] = now
	}
	return now.Sub(first) < m.knobs.UnavailableFirst
}

// answer serves the paths below accountsPath: the listing, and for each account its leaves.
func (m *metadata) answer(w http.ResponseWriter, r *http.Request, me Workload) {
	rest, ok := strings.CutPrefix(r.URL.Path, accountsPath)
	if !ok {
		http.NotFound(w, r)
		return
	}
	recursive := strings.EqualFold(r.URL.Query().Get("recursive"), "true")
	account, leaf, slash := strings.Cut(rest, "/")
	email := account
	if account == "default" {
		email = me.Email
	}
	switch {
	case account == "" && recursive:
		writeJSON(w, map[string]any{"default": describe(me.Email), me.Email: describe(me.Email)})
	case account == "":
		writeText(w, "default/\n"+me.Email+"/\n")
	case !slash:
		http.Redirect(w, r, r.URL.Path+"/", http.StatusMovedPermanently)
	case leaf == "" && recursive:
		writeJSON(w, describe(email))
	default:
		m.leaf(w, r, me, email, leaf)
	}
}

func (m *metadata) leaf(w http.ResponseWriter, r *http.Request, me Workload, email, leaf string) {
	switch leaf {
	case "":
		writeText(w, "aliases\nemail\nidentity\nscopes\ntoken\n")
	case "aliases":
		writeText(w, "default\n")
	case "email":
		writeText(w, email)
	case "scopes":
		writeText(w, platform+"\n")
	case "token":
		m.token(w, r, me, email)
	case "identity":
		m.identity(w, r, me, email)
	default:
		http.NotFound(w, r)
	}
}

func describe(email string) map[string]any {
	return map[string]any{"aliases": []string{"default"}, "email": email, "scopes": []string{platform}}
}

func (m *metadata) token(w http.ResponseWriter, r *http.Request, me Workload, email string) {
	got, err := m.cache.get(r.Context(), me.Account+"|"+email, func(ctx context.Context) (credential, error) {
		return m.exchange.accessToken(ctx, me, email)
	})
	if err != nil {
		m.fail(w, "access", err)
		return
	}
	writeJSON(w, struct {
		Token   string `json:"access_token"`
		Expires int64  `json:"expires_in"`
		Type    string `json:"token_type"`
	}{got.value, int64(got.expires.Sub(m.clock.Now()) / time.Second), "Bearer"})
}

func (m *metadata) identity(w http.ResponseWriter, r *http.Request, me Workload, email string) {
	aud := r.URL.Query().Get("audience")
	if aud == "" {
		http.Error(w, "non-empty audience parameter required", http.StatusBadRequest)
		return
	}
	got, err := m.cache.get(r.Context(), me.Account+"|"+email+"|"+aud, func(ctx context.Context) (credential, error) {
		return m.exchange.identityToken(ctx, me, email, aud)
	})
	if err != nil {
		m.fail(w, "identity", err)
		return
	}
	writeText(w, got.value)
}

// fail answers with the status of upstream: 429 and 403 unchanged, all others as 500.
func (m *metadata) fail(w http.ResponseWriter, kind string, err error) {
	status := http.StatusInternalServerError
	if up, ok := errors.AsType[*UpstreamError](err); ok {
		switch up.Status {
		case http.StatusTooManyRequests:
			m.overQuota.Add(1)
			status = up.Status
		case http.StatusForbidden:
			status = up.Status
		}
	}
	m.failed.Add(1)
	http.Error(w, "Unable to generate "+kind+" token; "+err.Error(), status)
}

func writeText(w http.ResponseWriter, s string) {
	w.Header().Set("Content-Type", "application/text")
	w.Header().Set("Content-Length", strconv.Itoa(len(s)))
	_, _ = io.WriteString(w, s)
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encode the answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b)
}
