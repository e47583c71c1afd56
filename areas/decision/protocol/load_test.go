package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/clock"
	"tare/internal/load"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// startOPA starts an Open Policy Agent from PATH. It skips the test if there is none.
func startOPA(t *testing.T) *Session {
	t.Helper()
	return startProgram(t, "/health", "opa", "run", "--server", "--disable-telemetry", "--log-level", "error", "--addr")
}

// startOpenFGA starts the OpenFGA that tare builds.
func startOpenFGA(t *testing.T) *Session {
	t.Helper()
	hosttest.SkipIfShort(t)
	host := engine.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
	l, err := engine.Find(t.Context(), engine.OpenFGA, host)
	if missing := new(engine.Missing); errors.As(err, &missing) {
		hosttest.Missing(t, missing.Reason, missing.Next)
	}
	if err != nil {
		t.Fatal(err)
	}
	return startEngine(t, l, model.Set{N: 1})
}

// startEngine runs an engine with a set until the test ends.
func startEngine(t *testing.T, l engine.Launch, set model.Set) *Session {
	t.Helper()
	dir := t.TempDir()
	cfg, err := l.Prepare(dir, set)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Token = "test"
	child, err := proc.Start(t.Context(), proc.Spec{
		Name: string(l.Kind), Path: l.Path, Args: l.Args, Config: cfg, LogFile: filepath.Join(dir, "log"),
		ReadyWithin: 2 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := child.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	var ready engine.Ready
	if err := json.Unmarshal(child.Ready, &ready); err != nil {
		t.Fatal(err)
	}
	return &Session{Addr: netip.MustParseAddrPort(ready.Addr), Host: ready.Addr, Token: cfg.Token}
}

// startProgram runs a server from PATH on a free port, its last argument, until the test ends.
func startProgram(t *testing.T, health, program string, args ...string) *Session {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		hosttest.Missing(t, program+" is not on PATH", "have it there")
	}
	free := httptest.NewServer(nil)
	s := sessionTo(t, free)
	free.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, append(args, s.Addr.String())...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	for range 200 {
		if status, _, err := s.do(t.Context(), request{method: "GET", path: health}, time.Second); err == nil &&
			status == 200 {
			s.Options.Section = nil
			return s
		}
		if err := (clock.System{}).Sleep(t.Context(), 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("%s does not answer: %s", program, said.String())
	return nil
}

func TestRealOPA(t *testing.T) { loadTwoSets(t, opa(), startOPA(t)) }

func TestRealOpenFGA(t *testing.T) { loadTwoSets(t, openFGA(), startOpenFGA(t)) }

// loadTwoSets loads two sets into a real decision point, asks about both, and removes one.
func loadTwoSets(t *testing.T, a Adapter, s *Session) {
	t.Helper()
	const twoName = "tare-a-run-with-a-name-that-is-as-long-as-any-name-can-be-18a5f3d1c2b4e6f7-12"
	small, large := model.Set{N: 1}, model.Set{N: 250}
	before := *s
	other, err := a.Load(t.Context(), s, small, "run-1 ä")
	if err != nil {
		t.Fatal(err)
	}
	if s.Options, err = a.Load(t.Context(), s, large, twoName); err != nil {
		t.Fatal(err)
	}
	wantAllAnswers(t, a, s, large)
	if err := a.Unload(t.Context(), &before, twoName); err != nil { // as another process would
		t.Fatal(err)
	}
	wantUnloaded(t, a, s, large)
	s.Options = other
	if got, err := a.Ask(t.Context(), s, small.Ask(model.First)); err != nil || got.Outcome != load.OK {
		t.Errorf("the policies beside those that were taken out: %+v, %v", got, err)
	}
	for range 2 {
		if err := a.Unload(t.Context(), &before, "run-1 ä"); err != nil {
			t.Error(err)
		}
	}
	wantUnloaded(t, a, s, small)
}

// storeOf is the store that the options name.
func storeOf(o Options) string {
	x, _ := sectionOf[OpenFGA](o)
	return x.Store
}

// wantUnloaded fails the test if a set is still loaded.
func wantUnloaded(t *testing.T, a Adapter, s *Session, set model.Set) {
	t.Helper()
	if a.Name == "openfga" { // it answers from its cache for a while: look at the stores
		status, body, err := s.do(t.Context(), request{method: "GET", path: "/stores"}, askTimeout)
		if err != nil || status != 200 || strings.Contains(string(body), storeOf(s.Options)) {
			t.Errorf("stores: %d %s %v", status, body, err)
		}
		return
	}
	if got, err := a.Ask(t.Context(), s, set.Ask(model.First)); err != nil || got.Decision != model.NotApplicable {
		t.Errorf("the policies that were taken out: %+v, %v", got, err)
	}
}

// A fakeStores is as much of OpenFGA's store API as loading needs.
type fakeStores struct {
	mu      sync.Mutex
	names   map[string]string // by ID
	writes  []int             // tuples in each write
	deleted []string
	fail    string // a path that answers 500
	pages   int

	requests int
}

func (s *fakeStores) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if s.requests++; s.requests%2 == 0 {
		w.Header().Set("Connection", "close") // as a proxy may that does not keep connections for ever
	}
	switch path := r.URL.Path; {
	case s.fail != "" && strings.HasSuffix(path, s.fail):
		http.Error(w, `{"code":"internal_error","message":"no disk"}`, http.StatusInternalServerError)
	case path == "/stores" && r.Method == http.MethodPost:
		var in struct{ Name string }
		_ = json.Unmarshal(body, &in)
		id := fmt.Sprintf("%026d", len(s.names)+1)
		s.names[id] = in.Name
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprintf(w, `{"id":%q,"name":%q}`, id, in.Name)
	case path == "/stores":
		s.list(w, r)
	case strings.HasSuffix(path, "/authorization-models"):
		_, _ = fmt.Fprintf(w, `{"authorization_model_id":%q}`, store)
	case strings.HasSuffix(path, "/write"):
		var in struct {
			Writes struct {
				Keys []model.Tuple `json:"tuple_keys"`
			}
		}
		_ = json.Unmarshal(body, &in)
		s.writes = append(s.writes, len(in.Writes.Keys))
		_, _ = io.WriteString(w, `{}`)
	case r.Method == http.MethodDelete:
		s.deleted = append(s.deleted, strings.TrimPrefix(path, "/stores/"))
		w.WriteHeader(http.StatusNoContent)
	}
}

// list answers one store a page, and does not know the query's name.
func (s *fakeStores) list(w http.ResponseWriter, r *http.Request) {
	s.pages++
	at := 1
	if token := r.URL.Query().Get("continuation_token"); token != "" {
		_, _ = fmt.Sscan(token, &at)
	}
	id, next := fmt.Sprintf("%026d", at), ""
	if at < len(s.names) {
		next = fmt.Sprint(at + 1)
	}
	_, _ = fmt.Fprintf(w, `{"stores":[{"id":%q,"name":%q}],"continuation_token":%q}`, id, s.names[id], next)
}

func TestOpenFGALoadInBatches(t *testing.T) {
	stub := &fakeStores{names: map[string]string{}}
	server := httptest.NewServer(stub)
	t.Cleanup(server.Close)
	s := sessionTo(t, server)
	s.Options = Options{Section: &OpenFGA{Relation: "viewer"}, Path: "kept"}
	o, err := openFGA().Load(t.Context(), s, model.Set{N: 120}, "mine")
	x, _ := sectionOf[OpenFGA](o)
	if want := (OpenFGA{Store: fmt.Sprintf("%026d", 1), Model: store}); err != nil || x != want || o.Path != "kept" {
		t.Fatalf("got options %+v, %v", o, err)
	}
	if want := []int{100, 100, 40}; fmt.Sprint(stub.writes) != fmt.Sprint(want) {
		t.Errorf("tuples a write: %v, want %v", stub.writes, want)
	}
	for _, name := range []string{"theirs", "mine"} {
		if _, err := openFGA().Load(t.Context(), s, model.Set{N: 1}, name); err != nil {
			t.Fatal(err)
		}
	}
	if err := openFGA().Unload(t.Context(), s, "mine"); err != nil {
		t.Fatal(err)
	}
	if want := []string{fmt.Sprintf("%026d", 1), fmt.Sprintf("%026d", 3)}; fmt.Sprint(stub.deleted) != fmt.Sprint(want) ||
		stub.pages != 3 {
		t.Errorf("deleted %v on %d pages, want %v", stub.deleted, stub.pages, want)
	}
}

// TestEndlessListOfStoresEnds: a server that never ends its list, or lists the store ever again, keeps nobody from
// ending.
func TestEndlessListOfStoresEnds(t *testing.T) {
	hosttest.SkipIfShort(t)
	for name, stores := range map[string]string{
		"pages":  "",
		"stores": strings.Repeat(`{"id": "a", "name": "mine"},`, 2*mostRequests) + `{"id": "b", "name": "other"}`,
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			_, _ = fmt.Fprintf(w, `{"stores": [%s], "continuation_token": "%d"}`, stores, asked) // or the client is gone
			stores = ""
		}))
		err := openFGA().Unload(t.Context(), sessionTo(t, server), "mine")
		server.Close()
		if err == nil || !strings.Contains(err.Error(), "remove the store mine yourself") || asked != mostRequests {
			t.Errorf("%s: %v after %d requests", name, err, asked)
		}
	}
}

func TestOpenFGALoadErrors(t *testing.T) {
	for _, path := range []string{"/stores", "/authorization-models", "/write"} {
		server := httptest.NewServer(&fakeStores{names: map[string]string{}, fail: path})
		s := sessionTo(t, server)
		o, err := openFGA().Load(t.Context(), s, model.Set{N: 3}, "mine")
		if err == nil || !strings.Contains(err.Error(), "load 3 policies: POST "+"/stores") ||
			!strings.Contains(err.Error(), "no disk") || o != s.Options {
			t.Errorf("%s fails: %+v, %v", path, o, err)
		}
		server.Close()
	}
}

func TestLoadErrors(t *testing.T) {
	for name, a := range map[string]Adapter{"opa": opa(), "openfga": openFGA()} {
		for status, body := range map[int]string{401: `{"code":"unauthorized"}`, 400: `{"code":"invalid_parameter"}`, 500: ``} {
			s, says := startAnswering(t, status, body), fmt.Sprintf("status %d", status)
			_, err := a.Load(t.Context(), s, set, "x")
			if err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), body) {
				t.Errorf("%s loads after %d: %v", name, status, err)
			}
			if err := a.Unload(t.Context(), s, "x"); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s unloads after %d: %v", name, status, err)
			}
		}
		gone := startAnswering(t, 200, `{}`)
		gone.Addr = closedPort(t)
		if _, err := a.Load(t.Context(), gone, set, "x"); err == nil {
			t.Errorf("%s loads into nobody", name)
		}
		if err := a.Unload(t.Context(), gone, "x"); err == nil {
			t.Errorf("%s unloads from nobody", name)
		}
	}
	for _, body := range []string{``, `{}`, `[]`, `x`} {
		if o, err := openFGA().Load(t.Context(), startAnswering(t, 201, body), set, "x"); err == nil {
			t.Errorf("a store without an ID: %+v", o)
		}
	}
	if err := opa().Unload(t.Context(), startAnswering(t, 404, `{}`), "x"); err != nil {
		t.Errorf("there is nothing to take out: %v", err)
	}
}

func TestNamesOfRuns(t *testing.T) {
	for name, want := range map[string]string{
		"run-1": "p_run_1", "20261121T110000Z.a/b": "p_20261121T110000Z_a_b",
		"": "p_", "ä": "p__",
	} {
		if got := identifier(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
	long := strings.Repeat("run-", 30)
	for name, want := range map[string]string{
		"tare-run-1": "tare-run-1", "a b": "a_b-c8687a08aa5d6ed2", "": "-e3b0c44298fc1c14", "xy": "xy-769a4e6d0003189c",
		long[:64]: long[:64], long[:65]: long[:47] + "-" + "db9254eff77c248d",
	} {
		if got := storeName(name); got != want || len(got) < 3 || len(got) > maxStoreName {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
