package drive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/run"
	"tare/rigs/hosttest"
)

// soakRequest returns the request for a soak of a target.
func soakRequest(t *testing.T, target area.Target, l run.Load) (run.Request, func() *record.Record) {
	t.Helper()
	var s exactTarget
	req, open := start(t, &s, run.Blocks{})
	req.Area, req.Question, req.Load = openedArea{Area: &s, target: target}, design.Soak, l
	req.Treatments = []design.Treatment{{ID: "here", Baseline: true}}
	return req, open
}

// soakState returns the state of the soak that an event is about, or nil.
func soakState(e run.Event) *Soak {
	s, _ := e.Detail.(*Soak)
	return s
}

// sumEndedCalls adds up the calls that ended in slices: all of them, and those of the measured window.
func sumEndedCalls(slices []record.Slice) (all, measured uint64, causes map[load.Cause]uint64) {
	causes = map[load.Cause]uint64{}
	for _, s := range slices {
		for i := range s.Operations {
			o := &s.Operations[i]
			n := o.Ended()
			if all += n; !s.WarmUp {
				measured += n
			}
			for _, outcome := range o.Outcomes {
				for _, c := range outcome.Causes {
					causes[c.Cause] += c.Count
				}
			}
		}
	}
	return all, measured, causes
}

// auditSoak checks what holds for every soak, however it ended: no gap between slices; the same calls in slices,
// histograms and counts; a window that covers the measured slices.
func auditSoak(t *testing.T, r *record.Record) *record.Trial {
	t.Helper()
	if len(r.Warnings) > 0 || len(r.Trials) != 1 {
		t.Fatalf("read the record: warnings %q, %d trials", r.Warnings, len(r.Trials))
	}
	trial := r.Trials[0]
	if trial.HasCalls() {
		t.Error("the record keeps single calls")
	}
	var due uint64
	for i, s := range trial.Slices {
		due += s.Due
		if s.End <= s.Start || (i > 0 && (s.Start != trial.Slices[i-1].End || s.WarmUp && !trial.Slices[i-1].WarmUp)) {
			t.Errorf("slice %d is from %v to %v, warm-up %v", i, s.Start, s.End, s.WarmUp)
		}
	}
	all, measured, _ := sumEndedCalls(trial.Slices)
	if all > due {
		t.Errorf("%d calls ended, %d were due", all, due)
	}
	var counted, read uint64
	for _, c := range trial.Counts {
		counted += c.Count
	}
	damaged, err := trial.Histograms(func(iv *record.Interval) {
		if iv.Measure == record.Response {
			read += iv.Hist.Count()
		}
	})
	if err != nil || damaged > 0 || counted != measured || read != measured {
		t.Errorf("%d calls ended in the slices that are measured, %d are counted, %d are in the histograms; %d damaged, %v",
			measured, counted, read, damaged, err)
	}
	if w := trial.Window; measured > 0 {
		i := slices.IndexFunc(trial.Slices, func(s record.Slice) bool { return !s.WarmUp })
		if w == nil || w.Start != trial.Slices[i].Start || w.End != trial.Slices[len(trial.Slices)-1].End {
			t.Errorf("the window is %v, the slices that are measured begin at %v", w, trial.Slices[i].Start)
		}
		if len(trial.Samples) != 2 || trial.Samples[0].When != record.Before || trial.Samples[1].When != record.After ||
			len(trial.Generator) != 1 {
			t.Errorf("samples %v, generator %v", trial.Samples, trial.Generator)
		}
	}
	return trial
}

// countsAgree checks that both sides count the same answers, except for those that never arrived.
func countsAgree(t *testing.T, trial *record.Trial) {
	t.Helper()
	if len(trial.Answers) != 1 {
		t.Fatalf("answers %v", trial.Answers)
	}
	a := trial.Answers[0]
	for _, word := range []string{"permit", "deny"} {
		said := uint64(a.After[word] - a.Before[word])
		if seen := a.Seen[word]; seen == 0 || said < seen || said > seen+a.Unanswered {
			t.Errorf("%q: callers saw %d, the target counts %d, %d calls had no answer; %s",
				word, seen, said, a.Unanswered, a.Error)
		}
	}
}

func TestSoak(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	for name, l := range map[string]run.Load{
		"fast": {
			Config: load.Config{Engine: load.Fast, MaxRate: 2000},
			Closed: &load.Closed{Workers: 4, Ramp: 1200 * time.Millisecond},
		},
		"std":     {Config: load.Config{Engine: load.Std, MaxRate: 2000}, Closed: &load.Closed{Workers: 4}},
		"open":    {Config: load.Config{Engine: load.Fast}, Rate: 400},
		"poisson": {Config: load.Config{Engine: load.Fast}, Rate: 400, Poisson: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &serverTarget{site: newTestServer(t)}
			v.probes = []probe.Probe{serverProbe{v.site}}
			l.Timeout, l.MaxConns, l.Duration = 5*time.Second, 8, 2*time.Second
			req, open := soakRequest(t, v, l)
			var warm, cuts int
			req.Events = func(e run.Event) {
				if soakState(e) != nil && soakState(e).Cut {
					cuts++
				}
				if e.Phase == run.WarmingUp {
					warm++
				}
			}
			if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
				t.Fatal(status, err)
			}
			r := open()
			trial := auditSoak(t, r)
			countsAgree(t, trial)
			if len(r.Warned) > 0 || !trial.Complete() || len(r.Host) != 1 {
				t.Errorf("warnings %v, end %v, %d readings of the host", r.Warned, trial.End, len(r.Host))
			}
			all, _, causes := sumEndedCalls(trial.Slices)
			for _, late := range []load.Cause{load.CauseNoConnection, load.CauseNoByte, load.CauseNoEnd} {
				delete(causes, late) // as on a host that stalls
			}
			if causes[load.OwnCauses] == 0 || len(causes) != 1 {
				t.Errorf("causes %v: the strange operation is answered with the opposite, and nothing else goes wrong", causes)
			}
			if n := len(trial.Slices); n < 4 || n > 8 || cuts != n || warm == 0 {
				t.Errorf("%d slices, %d events of them, %d of the warm-up: want two of warm-up and four of half a second", n,
					cuts, warm)
			}
			want := float64(1+2) * 400
			if l.Closed == nil && (float64(all) < want*0.8 || float64(all) > want*1.2) {
				t.Errorf("%d calls, want about %g", all, want)
			}
			if d := cmp.Diff([]string{"permit", "deny", "permit"}, trial.TrialBegin.Answers); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff([][]string{{"deny"}, {"permit"}, {"deny"}}, trial.CauseAnswers); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestSoakSurvivesARestart: a target that restarts in the middle loses calls, and nothing else.
func TestSoakSurvivesARestart(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	for _, engine := range []load.Engine{load.Fast, load.Std} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			v := &serverTarget{site: newTestServer(t)}
			v.probes = []probe.Probe{serverProbe{v.site}}
			const workers = 4
			req, open := soakRequest(t, v, run.Load{
				Config:   load.Config{Engine: engine, Timeout: 5 * time.Second, MaxConns: 8, MaxRate: 1000},
				Duration: 5 * time.Second, Closed: &load.Closed{Workers: workers}, Abort: &run.Abort{Share: 0.5, For: time.Minute},
			})
			var stopped, again bool
			var last Soak
			req.Events = func(e run.Event) {
				if soakState(e) == nil {
					return
				}
				last = *soakState(e)
				switch at := soakState(e).Elapsed; {
				case !stopped && at > 1800*time.Millisecond:
					stopped = true
					v.site.stop()
				case !again && at > 3500*time.Millisecond:
					again = true
					v.site.restart(t)
				}
			}
			if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
				t.Fatal(status, err)
			}
			r := open()
			trial := auditSoak(t, r)
			all, _, causes := sumEndedCalls(trial.Slices)
			refused := causes[load.CauseConnect]
			// Each worker tries 20 times a second while nobody is there.
			if refused < workers || refused > workers*20*4 {
				t.Errorf("%d calls were refused, causes %v, %d calls in all", refused, causes, all)
			}
			if last.Restarts != 1 {
				t.Errorf("%d restarts were seen, want 1", last.Restarts)
			}
			if len(r.Warned) != 2 || !strings.Contains(r.Warned[0].Text, "cannot be read any more") ||
				!strings.Contains(r.Warned[1].Text, "can be read again") {
				t.Errorf("warnings %v, want one when the probe was lost and one when it was back", r.Warned)
			}
			missing := 0
			for _, s := range trial.Slices {
				if len(withoutHost(s.Samples)) == 0 {
					missing++
				}
			}
			if missing == 0 || missing == len(trial.Slices) {
				t.Errorf("%d of %d slices have no reading", missing, len(trial.Slices))
			}
			end := trial.Slices[len(trial.Slices)-1]
			if len(end.Operations) == 0 || end.Operations[0].Outcomes[0].Outcome != load.OK {
				t.Errorf("no call was answered after the restart: %+v", end)
			}
			if a := trial.Answers[0]; a.Error != "" || a.After["permit"] >= float64(a.Seen["permit"]) {
				t.Errorf("the target's counts begin at 0 after its restart: %+v", a)
			}
		})
	}
}

// TestSoakInterrupted: an interrupted soak keeps everything that it measured.
func TestSoakInterrupted(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for name, at := range map[string]time.Duration{
		"measuring":  2200 * time.Millisecond,
		"warming up": 400 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &serverTarget{site: newTestServer(t)}
			v.probes = []probe.Probe{serverProbe{v.site}}
			req, open := soakRequest(t, v, run.Load{
				Config:   load.Config{Timeout: 5 * time.Second, MaxConns: 8, MaxRate: 1000},
				Duration: 9 * time.Second, Closed: &load.Closed{Workers: 4},
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req.Events = func(e run.Event) {
				if soakState(e) != nil && soakState(e).Elapsed > at {
					cancel()
				}
			}
			if status, err := Do(ctx, req); status != record.Interrupted || err != nil {
				t.Fatal(status, err)
			}
			r := open()
			trial := auditSoak(t, r)
			countsAgree(t, trial)
			if trial.End == nil || trial.End.Status != record.Interrupted || r.Finish.Status != record.Interrupted ||
				len(r.Warned) > 0 {
				t.Errorf("the trial ended %v, the run %v, warnings %v", trial.End, r.Finish, r.Warned)
			}
			if (trial.Window != nil) != (name == "measuring") || len(trial.Slices) == 0 {
				t.Errorf("window %v, %d slices", trial.Window, len(trial.Slices))
			}
		})
	}
}

// TestSoakAborts: a target that fails for too long ends the soak, which keeps what it measured.
func TestSoakAborts(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	v := &serverTarget{site: newTestServer(t)}
	req, open := soakRequest(t, v, run.Load{
		Config:   load.Config{Timeout: 5 * time.Second, MaxConns: 8, MaxRate: 1000},
		Duration: 9 * time.Second, Closed: &load.Closed{Workers: 4},
		Abort: &run.Abort{Share: 0.5, For: 500 * time.Millisecond},
	})
	stopped := false
	req.Events = func(e run.Event) {
		if soakState(e) != nil && soakState(e).Elapsed > 2*time.Second && !stopped {
			stopped = true
			v.site.stop()
			v.site.restart(t) // so that the test can end it once more
			v.site.mu.Lock()
			v.site.counts["broken"] = 1
			v.site.mu.Unlock()
		}
	}
	if status, err := Do(t.Context(), req); status != record.Errored || !errors.Is(err, run.ErrAborted) {
		t.Fatal(status, err)
	}
	trial := auditSoak(t, open())
	if trial.End == nil || trial.End.Status != record.Errored || trial.Window == nil || len(trial.Answers) != 1 {
		t.Errorf("end %v, window %v, answers %v", trial.End, trial.Window, trial.Answers)
	}
}

// TestSoakRamp: the warm-up of a ramp is at its rate; the ramp itself begins at zero.
func TestSoakRamp(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	v := &serverTarget{site: newTestServer(t)}
	req, open := soakRequest(t, v, run.Load{
		Config: load.Config{Timeout: 5 * time.Second, MaxConns: 8},
		Rate:   400, Ramp: true, Duration: 3 * time.Second,
	})
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	r := open()
	trial := auditSoak(t, r)
	due := map[bool]uint64{} // whether they are of the warm-up
	for _, s := range trial.Slices {
		due[s.WarmUp] += s.Due
	}
	if warm, measured := due[true], due[false]; warm < 350 || warm > 500 || measured < 500 || measured > 700 {
		t.Errorf("%d calls were due in the warm-up, %d in the ramp: want about 400 and 600", warm, measured)
	}
	i := slices.IndexFunc(trial.Slices, func(s record.Slice) bool { return !s.WarmUp })
	if first, last := trial.Slices[i], trial.Slices[len(trial.Slices)-1]; first.Due*2 > last.Due {
		t.Errorf("%d calls were due in the ramp's first slice, %d in its last", first.Due, last.Due)
	}
	if r.Plan.Load.Arrivals != "ramp" {
		t.Errorf("the plan has arrivals %q", r.Plan.Load.Arrivals)
	}
}

// A hangingProbe never returns.
type hangingProbe struct{}

func (hangingProbe) Subject() string { return "slow" }
func (hangingProbe) Read(ctx context.Context) ([]metric.Sample, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestHangingProbeDelaysNothing: a probe that hangs has no values, and delays neither the load nor the other probes.
func TestHangingProbeDelaysNothing(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	v := &serverTarget{site: newTestServer(t)}
	v.probes = []probe.Probe{hangingProbe{}, serverProbe{v.site}}
	req, open := soakRequest(t, v, run.Load{
		Config: load.Config{Engine: load.Fast, Timeout: 5 * time.Second, MaxConns: 8},
		Rate:   200, Duration: 4 * time.Second,
	})
	if status, err := Do(t.Context(), req); status != record.Complete || err != nil {
		t.Fatal(status, err)
	}
	r := open()
	trial := auditSoak(t, r)
	all, _, _ := sumEndedCalls(trial.Slices)
	if all != 1000 {
		t.Errorf("%d calls, want 200 a second for 1 s and 4 s", all)
	}
	told := 0
	for _, w := range r.Warned {
		if strings.Contains(w.Text, "probe of slow cannot be read any more") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("warnings %v, want one about the slow probe while the load lasts", r.Warned)
	}
	for i, s := range trial.Slices {
		if len(withoutHost(s.Samples)) != 2 || s.Samples[0].Subject != "site" || s.Samples[0].At < s.End {
			t.Errorf("slice %d, which ends at %v, has readings %v", i, s.End, s.Samples)
		}
	}
}

// A provenTarget is verified before and after its load.
type provenTarget struct {
	serverTarget
	clock.System

	asked, fails int // fails is how many proofs after the load fail
	ahead        time.Duration
	gone         bool // the server does not come back
}

func (p *provenTarget) Verify(context.Context, design.Treatment) error {
	p.asked++
	if p.gone && p.asked == 2 {
		p.site.stop()
	}
	if p.asked > 1 && p.asked <= 1+p.fails {
		return errors.New("it permits")
	}
	return nil
}

func (p *provenTarget) Now() time.Time { return p.System.Now().Add(p.ahead) }

// Sleep takes no time once the load has ended.
func (p *provenTarget) Sleep(ctx context.Context, d time.Duration) error {
	if p.asked < 2 {
		return p.System.Sleep(ctx, d)
	}
	p.ahead += d
	return ctx.Err()
}

// TestControlsAreProvedAgain when their load has ended: they may have been in force at its begin only.
func TestControlsAreProvedAgain(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	const never = 1000
	for name, x := range map[string]struct {
		fails  int
		gone   bool
		status record.Status
		proofs []bool // of the record
	}{
		"in force":           {0, false, record.Complete, []bool{true, true}},
		"is overloaded":      {3, false, record.Complete, []bool{true, true}},
		"opened":             {never, false, record.Errored, []bool{true, false}},
		"does not come back": {never, true, record.Complete, []bool{true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &provenTarget{serverTarget: serverTarget{site: newTestServer(t)}, fails: x.fails, gone: x.gone}
			req, open := soakRequest(t, p, run.Load{
				Config: load.Config{Timeout: 5 * time.Second, MaxConns: 8}, Rate: 100, Duration: time.Second,
			})
			req.Env.Clock = p
			status, err := Do(t.Context(), req)
			if status != x.status || (err != nil) != (x.status == record.Errored) ||
				err != nil && !strings.Contains(err.Error(), "here is not in force any more after its load: it permits") {
				t.Errorf("status %s, error %v", status, err)
			}
			if x.gone {
				p.site.restart(t) // so that the test can end it
			}
			r := open()
			var proofs []bool
			for i, v := range r.Verified {
				if proofs = append(proofs, v.OK); v.After != (i == 1) {
					t.Errorf("proof %d: %+v", i, v)
				}
			}
			warned := slices.ContainsFunc(r.Warned, func(w record.Warning) bool {
				return strings.Contains(w.Text, "served no calls")
			})
			if !slices.Equal(proofs, x.proofs) || warned != x.gone || !r.Trials[0].Complete() {
				t.Errorf("proofs %v, want %v; warnings %v", proofs, x.proofs, r.Warned)
			}
		})
	}
}
