package reference

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/clock"
)

// RunSTS serves the token exchange and the IAM calls on cfg.Addr, and /healthz and /debug on cfg.Admin, until ctx ends.
// ready is called once, when it answers. Its own keys are made at the start and never leave memory.
func RunSTS(ctx context.Context, cfg STSConfig, ready func(Ready) error) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("sts: %w", err)
	}
	return runSTS(ctx, clock.System{}, cfg, ready)
}

func runSTS(ctx context.Context, c clock.Clock, cfg STSConfig, ready func(Ready) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, err := newSTS(c, cfg)
	if err != nil {
		return fmt.Errorf("sts: %w", err)
	}
	main, backlog, err := listen(ctx, cfg.Addr, 0)
	if err != nil {
		return fmt.Errorf("sts: %w", err)
	}
	admin, _, err := listen(ctx, cfg.Admin, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("sts: %w", err), main.Close())
	}
	counted := newLimitListener(main, 0)
	secret := newSecret()
	var s servers
	s.serve(newServer(ctx, t.handler()), counted)
	s.serve(newServer(ctx, adminHandler(secret, func() Counters { return t.counters(counted) }, t.does())), admin)
	err = ready(Ready{
		Addr: main.Addr().String(), Admin: adminBase(admin, secret), Backlog: backlog,
		Procs: runtime.GOMAXPROCS(0),
	})
	if err == nil {
		err = s.wait(ctx)
	}
	cancel()
	err = errors.Join(err, s.shut())
	t.inside.shut()
	return err
}

// sts is the token exchange and the part of IAM that makes tokens.
type sts struct {
	knobs  STSKnobs
	trust  *Verifier
	keys   atomic.Pointer[stsKeys]
	slower atomic.Int64 // ns that each hop takes more
	clock  clock.Clock
	inside *gate

	requests, inFlight, asked, exchanges, overQuota, invalid atomic.Int64

	mu      sync.Mutex
	buckets map[string]*bucket // by pool
	revoked map[string]bool    // subjects that may act as nobody
}

// stsKeys are the keys of a server, which a rotation replaces.
type stsKeys struct {
	signer *Signer // of identity tokens
	seal   []byte  // of the tokens that only this server reads
}

func newKeys() (*stsKeys, error) {
	signer, err := NewSigner(ES256)
	if err != nil {
		return nil, err
	}
	k := &stsKeys{signer: signer, seal: make([]byte, 32)}
	if _, err := rand.Read(k.seal); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return k, nil
}

func newSTS(c clock.Clock, cfg STSConfig) (*sts, error) {
	trust, err := ParseVerifier(cfg.TrustedKey)
	if err != nil {
		return nil, err
	}
	t := &sts{
		knobs: cfg.STSKnobs, trust: trust, clock: c, inside: newGate(), buckets: map[string]*bucket{},
		revoked: map[string]bool{},
	}
	return t, t.rotate()
}

func (t *sts) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/token", t.exchange)
	mux.HandleFunc("POST /v1/projects/-/serviceAccounts/{call}", t.impersonate)
	mux.HandleFunc("POST /tokeninfo", t.info)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.inside.enter() {
			return
		}
		defer t.inside.leave()
		t.requests.Add(1)
		t.inFlight.Add(1)
		defer t.inFlight.Add(-1)
		r.Body = http.MaxBytesReader(w, r.Body, maxAnswer)
		mux.ServeHTTP(w, r)
	})
}

// exchange answers RFC 8693, section 2. The quota is per pool, and only exchanges that would succeed count against it.
func (t *sts) exchange(w http.ResponseWriter, r *http.Request) {
	t.asked.Add(1)
	claims, pool, code, why := t.subject(r)
	if code != "" {
		t.invalid.Add(1)
		writeStatus(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
		return
	}
	if !t.admit(w, r, pool) || t.clock.Sleep(r.Context(), t.latency()) != nil {
		return
	}
	t.exchanges.Add(1)
	token, err := t.sealed("ya29.d.", bearer{Subject: claims.Subject, Expires: t.clock.Now().Add(t.knobs.TTL)})
	if err != nil {
		http.Error(w, "seal a token", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, map[string]any{
		"access_token": token, "issued_token_type": typeAccessToken, "token_type": "Bearer",
		"expires_in": int64(t.knobs.TTL / time.Second),
	})
}

// subject checks an exchange. code is the error code of RFC 8693, section 2.2.2, or empty.
func (t *sts) subject(r *http.Request) (c Claims, pool, code, why string) {
	if r.ParseForm() != nil {
		return c, "", "invalid_request", "The body is not a form."
	}
	f := r.PostForm
	pool, ok := poolOf(f.Get("audience"))
	switch {
	case f.Get("grant_type") != grantExchange:
		return c, "", "unsupported_grant_type", "Only the token exchange grant is supported."
	case f.Get("subject_token_type") != typeJWT:
		return c, "", "invalid_request", "subject_token_type must be a JWT."
	case f.Get("requested_token_type") != "" && f.Get("requested_token_type") != typeAccessToken:
		return c, "", "invalid_request", "Only access tokens are issued."
	case !ok:
		return c, "", "invalid_target", "The audience is not a workload-identity pool of this server."
	}
	c, err := t.trust.Verify(f.Get("subject_token"), t.clock.Now())
	switch {
	case err != nil:
		return c, "", "invalid_request", "The subject_token is invalid: " + err.Error() + "."
	case c.Issuer != clusterURL:
		return c, "", "invalid_request", "The subject_token has an unknown issuer."
	case c.Audience != pool:
		return c, "", "invalid_request", "The subject_token is for another audience."
	}
	return c, pool, "", ""
}

// admit applies the quota. It reports whether the exchange may go on, and has answered if not.
func (t *sts) admit(w http.ResponseWriter, r *http.Request, pool string) bool {
	if t.knobs.QuotaRate == 0 {
		return true
	}
	wait, ok := t.bucket(pool).take(t.clock.Now())
	switch {
	case ok && wait == 0:
		return true
	case ok:
		t.overQuota.Add(1)
		return t.clock.Sleep(r.Context(), wait) == nil
	case t.knobs.QuotaMode == Tarpit:
		t.overQuota.Add(1)
		<-r.Context().Done()
		return false
	}
	t.overQuota.Add(1)
	w.Header().Set("Retry-After", "1")
	writeGoogle(w, http.StatusTooManyRequests, "RESOURCE_EXHAUSTED",
		"Quota exceeded for quota metric 'Token exchange requests'.")
	return false
}

func (t *sts) bucket(pool string) *bucket {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buckets[pool]
	if b == nil {
		b = newBucket(t.knobs, t.clock.Now())
		t.buckets[pool] = b
	}
	return b
}

func (t *sts) counters(l *limitListener) Counters {
	return Counters{
		Requests: t.requests.Load(), InFlight: t.inFlight.Load(), Connections: l.open.Load(),
		Asked: t.asked.Load(), Exchanges: t.exchanges.Load(), OverQuota: t.overQuota.Load(), Invalid: t.invalid.Load(),
		STS: &t.knobs,
	}
}

// bearer is what a sealed token says.
type bearer struct {
	Subject string    `json:"subject,omitempty"` // of a federated token
	Email   string    `json:"email,omitempty"`   // of an access token
	Expires time.Time `json:"expires"`
	Nonce   []byte    `json:"nonce"`
}

// sealed makes an opaque token that only this server can make and read: content and HMAC-SHA-256. The nonce makes every
// token differ, and makes answers about as long as the published ones (506 bytes).
func (t *sts) sealed(prefix string, b bearer) (string, error) {
	b.Nonce = make([]byte, 134)
	if _, err := rand.Read(b.Nonce); err != nil {
		return "", err
	}
	body, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	b64 := base64.RawURLEncoding
	content := prefix + b64.EncodeToString(body)
	return content + "." + b64.EncodeToString(t.mac(content)), nil
}

// unsealed reverses sealed; ok is false for a token that is not this server's, has another prefix, or has expired.
func (t *sts) unsealed(prefix, token string) (b bearer, ok bool) {
	i := strings.LastIndexByte(token, '.')
	if i < len(prefix) || !strings.HasPrefix(token, prefix) {
		return b, false
	}
	mac, err := base64.RawURLEncoding.Strict().DecodeString(token[i+1:])
	if err != nil || !hmac.Equal(mac, t.mac(token[:i])) {
		return b, false
	}
	if decodePart(token[len(prefix):i], &b) != nil {
		return b, false
	}
	return b, t.clock.Now().Before(b.Expires)
}

func (t *sts) mac(content string) []byte {
	h := hmac.New(sha256.New, t.keys.Load().seal)
	h.Write([]byte(content))
	return h.Sum(nil)
}

func writeStatus(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// writeGoogle writes an error as Google's APIs do (https://cloud.google.com/apis/design/errors).
func writeGoogle(w http.ResponseWriter, status int, code, message string) {
	writeStatus(w, status, map[string]any{"error": map[string]any{"code": status, "status": code, "message": message}})
}
