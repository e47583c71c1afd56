package protocol

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
)

// TestPDPXReveals the published trap: without guard policies all answers are Permit, and the statistics count
// NotApplicable.
func TestPDPXReveals(t *testing.T) {
	for _, c := range []struct {
		planted string
		q       string
		counted model.Decision
		text    string
	}{
		{"", pdpxMinMax, model.Permit, "the PDP counts Permit"},
		{"", pdpxFrequency, model.Permit, "the PDP counts Permit"},
		{"", pdpxMonitoring, model.Permit, "the PDP counts Permit"},
		{"always-permit", pdpxMinMaxDeny, model.Permit, "the PDP counts Permit"},
		{
			"not-applicable-as-permit", pdpxMinMax, model.NotApplicable,
			`no policy is deployed for actor "SO", operation "VF Module Create", target "vf-module-id-1", vfCount 1: the PDP counts NotApplicable and answers Permit`,
		},
		{
			"not-applicable-as-permit", pdpxFrequency, model.NotApplicable,
			`no policy is deployed for actor "APPC", operation "Restart", target "vf-module-id-1", vfCount 1: the PDP counts NotApplicable and answers Permit`,
		},
		{"", pdpxMinMaxDeny, model.None, `the PDP answered Deny (actor "SO"`},
		{"indeterminate", pdpxMinMax, model.Indeterminate, `the policies for actor "SO"`},
		{"indeterminate", pdpxMonitoring, model.None, "the PDP answered Indeterminate"},
	} {
		s := startPDPX(t, engine.Config{N: 1, Username: "u", Password: "p", Answer: c.planted})
		q := pdpxQuestion(t, PDPXQuestions(PDPX{}, model.Set{N: 1}, model.First), c.q)
		got, err := pdpx().CheckCounts(t.Context(), s, q)
		if err != nil {
			t.Fatal(err)
		}
		if got.Counted != c.counted || !strings.HasPrefix(got.Text, c.text) {
			t.Errorf("%s, %s: %+v, want %v, %s", c.planted, c.q, got, c.counted, c.text)
		}
		s.Password = "wrong"
		if _, err := pdpx().CheckCounts(t.Context(), s, q); err == nil || !strings.Contains(err.Error(), "401") {
			t.Errorf("with a wrong password: %v", err)
		}
	}
}

// TestRevealAmongOthers: other callers are counted too, so only a count that is too small proves something.
func TestRevealAmongOthers(t *testing.T) {
	for _, c := range []struct {
		name  string
		added counts
		want  model.Decision
		text  string
	}{
		{"ours alone", counts{permit: countedAsks}, model.Permit, "counts Permit"},
		{"the trap", counts{notApplicable: countedAsks}, model.NotApplicable, "no policy is deployed"},
		{
			"the trap, and others' denies",
			counts{notApplicable: countedAsks, deny: 7},
			model.NotApplicable,
			"no policy is deployed",
		},
		{
			"the trap, and few permits of others",
			counts{notApplicable: countedAsks, permit: countedAsks - 1},
			model.NotApplicable, "no policy is deployed",
		},
		{"perhaps the trap", counts{notApplicable: countedAsks, permit: countedAsks}, model.None, "not conclusive"},
		{"many permits of others", counts{permit: 1000}, model.None, "not conclusive"},
		{"not evaluated", counts{indeterminate: countedAsks}, model.Indeterminate, "could not be evaluated"},
		{"denied and permitted", counts{deny: countedAsks}, model.Deny, "counts Deny"},
		{"not counted here", counts{}, model.None, "several behind this address"},
		{"half counted here", counts{notApplicable: 1}, model.None, "several behind this address"},
		{"restarted", counts{permit: -100}, model.None, "went back"},
	} {
		got := judgeCounts("x", c.added)
		if got.Counted != c.want || !strings.Contains(got.Text, c.text) {
			t.Errorf("%s: %+v, want %v and %q", c.name, got, c.want, c.text)
		}
	}
}

// TestBadPDPXStatistics: the error of unexpected statistics says what is wrong, without the password.
func TestBadPDPXStatistics(t *testing.T) {
	var answer atomic.Pointer[string]
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, *answer.Load())
	}))
	defer srv.Close()
	s := &Session{Addr: srv.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "h", Username: "u", Password: "s3cret"}
	for _, c := range []struct{ body, want string }{
		{`{}`, Causes()[NoStatistics]},
		{`s3cret`, Causes()[NotJSON]},
		{`{"permitDecisionsCount":1.5,"denyDecisionsCount":0,"notApplicableDecisionsCount":0,"indeterminantDecisionsCount":0}`, Causes()[NoStatistics]},
	} {
		answer.Store(&c.body)
		_, err := pdpx().Counted(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("statistics %s: error %v, want %q without the password", c.body, err, c.want)
		}
	}
	body := `{"permitDecisionsCount":12345678901,"denyDecisionsCount":2,"notApplicableDecisionsCount":3,"indeterminantDecisionsCount":4}`
	answer.Store(&body)
	got, err := pdpx().Counted(t.Context(), s)
	if err != nil || got["permit"] != 12345678901 || got["deny"] != 2 || got["not-applicable"] != 3 ||
		got["indeterminate"] != 4 {
		t.Errorf("got counts %v, %v", got, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pdpx().Counted(gone, s); err == nil {
		t.Error("after the context's end there is no error")
	}
}

// TestPDPXRevealsNothingFalse: whatever others ask meanwhile, a question that a policy permits is never reported as
// having no policy.
func TestPDPXRevealsNothingFalse(t *testing.T) {
	s := startPDPX(t, engine.Config{N: 1})
	questions := PDPXQuestions(PDPX{}, model.Set{N: 1}, model.First)
	others := []model.Question{
		pdpxQuestion(t, questions, pdpxAbsent), pdpxQuestion(t, questions, pdpxMinMaxDeny),
		pdpxQuestion(t, questions, pdpxMonitoring),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, q := range others {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = pdpx().Ask(ctx, s, q) // it ends with the test, in the middle of anything
			}
		})
	}
	defer wg.Wait()
	defer cancel()
	for range 40 {
		got, err := pdpx().CheckCounts(t.Context(), s, pdpxQuestion(t, questions, pdpxMinMax))
		if err != nil {
			t.Fatal(err)
		}
		if got.Counted != model.Permit && got.Counted != model.None {
			t.Fatalf("got %+v, want Permit or nothing counted", got)
		}
	}
}

// TestPDPXThatClosesConnections after each answer is asked on new ones.
func TestPDPXThatClosesConnections(t *testing.T) {
	permits := 0
	var mu sync.Mutex
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		mu.Lock()
		defer mu.Unlock()
		if r.Method == http.MethodPost {
			permits++
			_, _ = io.WriteString(w, `{"status":"Permit"}`)
			return
		}
		_, _ = fmt.Fprintf(w, `{"permitDecisionsCount":0,"denyDecisionsCount":0,"notApplicableDecisionsCount":%d,"indeterminantDecisionsCount":0}`, permits)
	}))
	defer srv.Close()
	s := &Session{Addr: srv.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "h"}
	got, err := pdpx().CheckCounts(t.Context(), s, pdpxQuestion(t, PDPXQuestions(PDPX{}, model.Set{}, model.First),
		pdpxMinMax))
	if err != nil || got.Counted != model.NotApplicable || permits != countedAsks {
		t.Errorf("%+v, %v, asked %d times", got, err, permits)
	}
}
