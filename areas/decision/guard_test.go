package decision

import (
	"fmt"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestTrespassesOfEveryAdapter: each question whose answer is no is a trespass beside the permitted question that is
// most like it; a permit is a breach, a refusal is not, and an answer that decides nothing is neither.
func TestTrespassesOfEveryAdapter(t *testing.T) {
	const review = `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":`
	const doc = `, resource: {type: doc, id: "1"}`
	requests := specOf(t, `requests: [
		{name: other, subject: {type: user, id: carol}, action: read, expect: permit`+doc+`},
		{name: read, subject: {type: user, id: alice}, action: read, expect: permit`+doc+`},
		{name: write, subject: {type: user, id: alice}, action: write, expect: deny`+doc+`}]`).Requests
	for _, c := range []struct {
		adapter                   string
		want                      string // trespass of twin
		refused, permitted, other string // answers to the first trespass
	}{
		{
			"authzen", "write of read", `{"decision":false}`, `{"decision":true}`,
			`{"decision":false,"context":{"error":{"status":500}}}`,
		},
		{"opa", "write of read", `{"result":false}`, `{"result":true}`, `{}`},
		{
			"xacml", "write of read", `{"Response":[{"Decision":"Deny"}]}`, `{"Response":[{"Decision":"Permit"}]}`,
			`{"Response":[{"Decision":"NotApplicable"}]}`,
		},
		{"openfga", "write of read", `{"allowed":false}`, `{"allowed":true}`, `{}`},
		{"k8s-sar", "write of read", review + `false,"denied":true}}`, review + `true}}`, review + `false}}`},
		{
			"pdpx", "monitoring-absent of monitoring, guard-minmax-deny of guard-minmax, " +
				"guard-frequency-deny of guard-frequency",
			`{"policies":{}}`, `{"policies":{"another":{"type":"x"}}}`, `{"error":1}`,
		},
		{"ext-authz", "write of read", "", "", ""},
	} {
		s := &Spec{URL: "127.0.0.1:1", Adapter: AdapterName(c.adapter)}
		if c.adapter != "pdpx" {
			s.Requests = requests
		}
		if c.adapter == "openfga" {
			s.OpenFGA = &protocol.OpenFGA{Store: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
		}
		p, err := s.plan(design.Treatment{})
		if err != nil {
			t.Fatalf("%s: %v", c.adapter, err)
		}
		tg := &target{spec: s}
		a, err := tg.arms.Add(standard, func(int) *arm {
			return &arm{plan: p, ready: true, session: &protocol.Session{Host: "pdp", Options: p.options, Token: "secret-token"}}
		})
		if err != nil {
			t.Fatal(err)
		}
		ops, err := tg.Trespasses(standard)
		if err != nil {
			t.Fatalf("%s: %v", c.adapter, err)
		}
		var got []string
		for _, op := range ops {
			got = append(got, op.Name+" of "+op.Twin)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: trespasses %q, want %q", c.adapter, text, c.want)
		}
		for body, want := range map[string]load.Outcome{
			c.refused: load.Denied, c.permitted: load.Permitted, c.other: load.Wrong,
		} {
			if w := ops[0].Wire; w != nil && w.Check(1, 200, []byte(body)) != want {
				t.Errorf("%s: %s is %v, want %v", c.adapter, body, w.Check(1, 200, []byte(body)), want)
			}
		}
		for status, want := range map[int]load.Outcome{
			401: load.Wrong, 403: load.Wrong, 500: load.Failed, 503: load.Refused,
		} {
			if w := ops[0].Wire; w != nil && w.Check(1, status, nil) != want {
				t.Errorf("%s: status %d is %v, want %v", c.adapter, status, w.Check(1, status, nil), want)
			}
		}
		request, answer := ops[0].Describe(1, 200, []byte(c.permitted+"secret-token"))
		if request == "" || strings.Contains(request+answer, "secret-token") || !strings.HasPrefix(answer, c.permitted) {
			t.Errorf("%s: a breach is described as %q, %q", c.adapter, request, answer)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestTrespassesWithoutPermits: among requests that are all refused each is its own twin, and guard is not asked.
func TestTrespassesWithoutPermits(t *testing.T) {
	spec := specOf(t, "embedded: {engine: cedar}, position: absent")
	tg, _ := prepared(t, spec)
	ops, err := tg.Trespasses(standard)
	if err != nil || len(ops) != 2 || ops[0].Twin != ops[0].Name {
		t.Errorf("got %+v, %v", ops, err)
	}
	found := spec.Validate(question.Of(design.Guard).Asked(), []design.Treatment{standard})
	if len(found) != 1 || !strings.Contains(found[0].Message, errNothingPermitted.Error()) {
		t.Errorf("guard is refused with %+v", found)
	}
}

// TestMixesThatAsk: a soak asks what must be refused besides a mix only where the mix asks for decisions.
func TestMixesThatAsk(t *testing.T) {
	for mix, want := range map[string]bool{
		"": true, "healthcheck": false, "healthcheck statistics": false, "healthcheck guard-minmax": true, "xacml": false,
	} {
		if got := embedded(engine.PDPX, Planted{}).Asks([]design.Treatment{standard}, strings.Fields(mix)); got != want {
			t.Errorf("the mix %q asks: %t, want %t", mix, got, want)
		}
	}
	url := areatest.Treatment("adapter", "openfga", "url", "http://127.0.0.1:1")
	if (&Spec{}).Asks([]design.Treatment{url}, nil) {
		t.Error("a section that is not valid asks")
	}
}

// TestMixesThatProve: a decision point that is asked for no decision is not called proved in force.
func TestMixesThatProve(t *testing.T) {
	for mix, want := range map[string]bool{"": true, "healthcheck statistics": false, "healthcheck guard-minmax": true} {
		spec := embedded(engine.PDPX, Planted{})
		spec.PDPX = &protocol.PDPX{Operations: strings.Fields(mix)}
		tg, _ := verifiedIn(t, spec, testEnv(t))
		if got := tg.Can().Unproved(standard); (got == "") != want {
			t.Errorf("%q: %q; want that it is proved: %v", mix, got, want)
		}
	}
}

// TestBatchesWithOnePermitAreBreaches: one permit in a batch that must be refused is a breach, whatever else is wrong.
func TestBatchesWithOnePermitAreBreaches(t *testing.T) {
	tg, _ := prepared(t, specOf(t, "embedded: {engine: cedar}, batch: 3"))
	ops, err := tg.Trespasses(standard)
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]load.Outcome{
		`{"evaluations":[{"decision":false},{"decision":false},{"decision":false}]}`:                                 load.Denied,
		`{"evaluations":[{"decision":false,"context":{"error":{"status":1}}},{"decision":true},{"decision":false}]}`: load.Permitted,
		`{"evaluations":[{"decision":false}]}`:                                                                       load.Wrong,
	} {
		if got := ops[0].Wire.Check(1, 200, []byte(body)); got != want {
			t.Errorf("%s is %v, want %v", body, got, want)
		}
	}
}

// condition finds one of the standard treatment's.
func (t *target) condition(tb testing.TB, name string) area.Condition {
	tb.Helper()
	all := t.Conditions(standard)
	i := slices.IndexFunc(all, func(c area.Condition) bool { return c.Name == name })
	if i < 0 {
		tb.Fatalf("there is no condition %s among %d", name, len(all))
	}
	return all[i]
}

// impose brings a condition about and ends it.
func impose(tb testing.TB, c area.Condition, meanwhile func()) {
	tb.Helper()
	lift, err := c.Impose(tb.Context())
	if err != nil {
		tb.Fatalf("%s: %v", c.Name, err)
	}
	meanwhile()
	if lift != nil {
		if err := lift(tb.Context()); err != nil {
			tb.Fatalf("end %s: %v", c.Name, err)
		}
	}
}

// TestConditionsLeaveNothingBehind: after each condition the reference answers as before, and the journal names no more
// than the processes that run.
func TestConditionsLeaveNothingBehind(t *testing.T) {
	spec := specOf(t, "embedded: {engine: cedar, enforcer: {}}, policies: 5")
	tg, j := prepared(t, spec)
	p := tg.arm(standard.ID)
	var names []string
	for _, c := range tg.Conditions(standard) {
		names = append(names, c.Name)
		if c.Name == area.Revoke {
			continue // has a test of its own
		}
		before, _ := p.latest()
		impose(t, c, func() {})
		after, _ := p.latest()
		if (before != after) != (c.Name == area.Restart || c.Name == area.ColdStart) {
			t.Errorf("%s: pid %d → %d", c.Name, before.PID, after.PID)
		}
		if err := tg.Verify(t.Context(), standard); err != nil {
			t.Errorf("after %s: %v", c.Name, err)
		}
	}
	if want := spec.Conditions(); !slices.Equal(names, want) || len(names) != 7 {
		t.Errorf("conditions %v, announced %v", names, want)
	}
	if n := len(j.Pending()); n != 2 {
		t.Errorf("%d changes are open, want the decision point and the enforcement point", n)
	}
}

// revoked withdraws n permissions and returns for how long they were still granted, in order.
func revoked(tb testing.TB, p *arm, n int) []float64 {
	tb.Helper()
	r := &revocation{arm: p, count: n}
	if err := r.run(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	var out []float64
	for _, x := range r.spans() {
		if !(x.Least < x.Most && x.Most < x.Least+1) {
			tb.Errorf("a permission was granted for %+v s", x)
		}
		out = append(out, x.Least)
	}
	slices.Sort(out)
	if len(out) != n {
		tb.Fatalf("%d figures of %d withdrawals", len(out), n)
	}
	return out
}

// TestTimeToRevoke: a cache's time to live is its time to revoke, within 10 %; without a cache a permission is gone
// when its withdrawal is acknowledged. What was granted for the measurement is gone after it.
func TestTimeToRevoke(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for planted, within := range map[string][2]float64{"": {0, 0}, "cache: 3s": {2.7, 3.3}} {
		tg, _ := prepared(t, specOf(t, "embedded: {engine: cedar, planted: {"+planted+"}}, policies: 5"))
		p := tg.arm(standard.ID)
		got := revoked(t, p, 10)
		if median := got[len(got)/2]; median < within[0] || median > within[1] {
			t.Errorf("with %q: revoked after %v s, want the median within %v", planted, got, within)
		}
		if a, err := p.question(t.Context(), p.set.Granted(p.set.N+1)); err != nil || a.Decision == model.Permit {
			t.Errorf("with %q, afterwards: %+v, %v", planted, a, err)
		}
	}
}

// TestPermissionsThatStayHaveNoEnd: the time of a permission that was never refused for good has only a lower bound,
// and so has one about which no question was answered. A permission that was not withdrawn has no time.
func TestPermissionsThatStayHaveNoEnd(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &revocation{arm: &arm{env: area.Env{Clock: clock.System{}}}}
	granted := &withdrawal{at: now.Add(-2 * time.Minute)}
	r.note(granted, now.Add(-time.Minute), model.Permit)
	r.note(granted, now, model.Permit)
	lately := &withdrawal{at: now.Add(-2 * time.Second)}
	r.note(lately, now.Add(-time.Second), model.Permit)
	r.note(lately, now, model.Deny)
	silent := &withdrawal{at: now}
	r.note(silent, now, model.Indeterminate)
	refused := &withdrawal{at: now.Add(-3 * time.Second)}
	r.note(refused, now.Add(-2*time.Second), model.Deny)
	r.note(refused, now, model.Deny)
	r.all = []*withdrawal{granted, lately, silent, refused, {}}
	open := math.Inf(1)
	got := r.spans()
	if len(got) != 4 || got[0] != (area.Span{Least: 120, Most: open}) || got[1] != (area.Span{Least: 1, Most: open}) ||
		got[2] != (area.Span{Most: open}) || got[3].Least != 0 || !(got[3].Most > 2.9 && got[3].Most < 60) {
		t.Errorf("%+v", got)
	}
}

// TestRevokeOfOPA withdraws permissions from a real OPA, through its policy API.
func TestRevokeOfOPA(t *testing.T) {
	env, l := requireEngine(t, engine.OPA)
	if l.Path == env.Self {
		hosttest.Missing(t, "the opa on PATH takes no policies from tare", "make engines")
	}
	tg, _ := preparedIn(t, specOf(t, "embedded: {engine: opa}, policies: 5"), env)
	impose(t, tg.condition(t, area.Reload), func() { time.Sleep(3 * reloadEvery) })
	if got := revoked(t, tg.arm(standard.ID), 5); got[4] > 0.1 {
		t.Errorf("revoked after %v s, want at once", got)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Error(err)
	}
}

// TestReloadGapFailsOpenInPDPX: a decision point without policies refuses everything where nothing permits by default,
// and permits everything where ONAP's guards answer NotApplicable with Permit. Without a gap neither is seen.
func TestReloadGapFailsOpenInPDPX(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, c := range []struct {
		kind engine.Kind
		gap  time.Duration
		want bool // a breach
	}{{engine.PDPX, 0, false}, {engine.PDPX, time.Second, true}, {engine.Cedar, time.Second, false}} {
		tg, _ := prepared(t, embedded(c.kind, Planted{Gap: unit.Duration(c.gap)}))
		p := tg.arm(standard.ID)
		ops, err := tg.Trespasses(standard)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(ops, func(op load.Operation) bool {
			return op.Name == "guard-minmax-deny" || op.Name == "deny"
		})
		done := make(chan error, 1)
		go func() { done <- p.replace(t.Context(), p.set) }()
		breach := false
		for running := true; running; {
			select {
			case err := <-done:
				if running = false; err != nil {
					t.Fatal(err)
				}
			default:
				raw := ops[i].Wire.Render(nil, 1)
				a, err := (oneshot.Client{Addr: p.addr()}).Do(t.Context(), raw, callTimeout)
				if err != nil {
					t.Fatal(err)
				}
				breach = breach || ops[i].Wire.Check(1, a.Status, a.Body) == load.Permitted
			}
		}
		if breach != c.want {
			t.Errorf("%s with a gap of %v: a breach %t, want %t", c.kind, c.gap, breach, c.want)
		}
		if err := tg.Verify(t.Context(), standard); err != nil {
			t.Error(err)
		}
	}
}

// TestStrangersCannotReload: who does not know the token cannot have the policies replaced.
func TestStrangersCannotReload(t *testing.T) {
	tg, _ := prepared(t, embedded(engine.Cedar, Planted{}))
	p := tg.arm(standard.ID)
	for _, token := range []string{"", "x"} {
		s := &protocol.Session{Addr: p.pdp, Host: p.pdp.String(), Token: token}
		if err := s.Manage(t.Context(), engine.ReloadPath); err == nil || !strings.Contains(err.Error(), "403") {
			t.Errorf("with token %q: %v", token, err)
		}
	}
}

// TestEnforcerFailureMode: while the decision point does not answer, failure_mode_allow permits what must be refused,
// and its opposite refuses what must be permitted; when it answers again, both decide rightly.
func TestEnforcerFailureMode(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, allow := range []bool{false, true} {
		enforcer := fmt.Sprintf("{timeout: 500ms, failure_mode_allow: %t}", allow)
		tg, _ := prepared(t, specOf(t, "embedded: {engine: cedar, enforcer: "+enforcer+"}"))
		p := tg.arm(standard.ID)
		want := model.Deny
		if allow {
			want = model.Permit
		}
		impose(t, tg.condition(t, area.Partition), func() {
			for _, q := range slices.Concat(p.questions, p.refusals) {
				if a, err := p.question(t.Context(), q); err != nil || a.Decision != want {
					t.Errorf("failure_mode_allow %t, without the decision point: %s: %+v, %v", allow, q.Name, a, err)
				}
			}
		})
		if err := tg.Verify(t.Context(), standard); err != nil {
			t.Errorf("failure_mode_allow %t: %v", allow, err)
		}
	}
}

// TestSlowDecisionPoints: of the answers that are held back about half come after the enforcement point has answered
// itself; none does before and after.
func TestSlowDecisionPoints(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	tg, _ := prepared(t, specOf(t, "embedded: {engine: cedar, enforcer: {timeout: 300ms, failure_mode_allow: true}}"))
	p := tg.arm(standard.ID)
	forbidden := p.questions[slices.IndexFunc(p.questions, func(q model.Question) bool { return q.Want == model.Deny })]
	permitted := func(n int) (out int) {
		for range n {
			a, err := p.question(t.Context(), forbidden)
			if err != nil {
				t.Fatal(err)
			}
			if a.Decision == model.Permit {
				out++
			}
		}
		return out
	}
	impose(t, tg.condition(t, area.Slow), func() {
		if got := permitted(16); got < 5 || got > 12 {
			t.Errorf("%d of 16 forbidden requests were permitted, want about half", got)
		}
	})
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	stranger := &protocol.Session{Addr: p.addr(), Host: p.addr().String(), Token: "x"}
	if err := stranger.Manage(t.Context(), engine.SlowPath); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a stranger slows it down: %v", err)
	}
}

// TestConditionsThatCannotBe: each has its reason, and what is announced is what the target has.
func TestConditionsThatCannotBe(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no opa there
	for _, c := range []struct {
		section, can string
		not          tree
	}{
		{"", "restart cold starved reload revoke", tree{area.Slow: "embedded.enforcer", area.Partition: "embedded.enforcer"}},
		{"embedded: {engine: pdpx}", "restart cold starved reload", tree{area.Revoke: "permits more than before"}},
		{"embedded: {engine: opa}", "restart cold starved reload revoke", nil},
		{
			"embedded: {engine: att, enforcer: {}}", "restart cold starved slow partition",
			tree{area.Reload: "reads its policies once", area.Revoke: "reads its policies once"},
		},
		{"adapter: pdpx, url: http://pdp", "", tree{area.Restart: "did not start", area.Reload: "load: true"}},
		{"adapter: opa, url: http://opa, load: true", "reload revoke", tree{area.Slow: "did not start"}},
	} {
		s := specOf(t, c.section)
		if got := strings.Join(s.Conditions(), " "); got != c.can {
			t.Errorf("%s: %q, want %q", c.section, got, c.can)
		}
		for name, why := range c.not {
			if got := s.WhyNot(name, nil); !strings.Contains(got, why) {
				t.Errorf("%s, %s: %q, want %q", c.section, name, got, why)
			}
		}
	}
	att := areatest.Treatment("engine", "att")
	varied := &Spec{}
	if varied.WhyNot(area.Reload, []design.Treatment{att}) == "" ||
		varied.WhyNot(area.Reload, []design.Treatment{att, standard}) != "" {
		t.Error("a condition is refused where one treatment has it, or allowed where none has")
	}
	p, err := embedded(engine.OPA, Planted{}).plan(standard)
	if err != nil || !strings.Contains(p.whyNot(area.Reload, true), "bundle") {
		t.Errorf("an opa in PATH: %q, %v", p.whyNot(area.Reload, true), err)
	}
}

// TestConditionsOfALoadedOPA: the policies that tare put into an OPA behind a URL are replaced and withdrawn; what else
// is there is not touched, and nothing is left behind.
func TestConditionsOfALoadedOPA(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	f := &fakeOPA{token: plantedSecret, modules: map[string]string{"theirs": "package theirs"}}
	server := httptest.NewServer(f)
	defer server.Close()
	tg, j := preparedIn(t, opaSpec(server.URL), testEnv(t, "OPA_TOKEN", plantedSecret))
	var names []string
	for _, c := range tg.Conditions(standard) {
		names = append(names, c.Name)
	}
	if want := opaSpec(server.URL).Conditions(); !slices.Equal(names, want) {
		t.Errorf("conditions %v, announced %v", names, want)
	}
	before := f.puts
	impose(t, tg.condition(t, area.Reload), func() { time.Sleep(3 * reloadEvery) })
	if f.puts < before+2 {
		t.Errorf("the policies were put there %d times", f.puts-before)
	}
	if got := revoked(t, tg.arm(standard.ID), 5); got[4] > 0.1 {
		t.Errorf("revoked after %v s, want at once", got)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Error(err)
	}
	if err := tg.Close(t.Context()); err != nil || len(j.Pending()) > 0 || !slices.Equal(f.loaded(), []string{"theirs"}) {
		t.Errorf("%v, %d changes left, modules %v", err, len(j.Pending()), f.loaded())
	}
}
