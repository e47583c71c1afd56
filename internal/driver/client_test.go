package driver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/rigs/hosttest"
)

// TestBadDrivers: whatever a driver does wrong, and when, the error is clear, its process ends, and nothing is left
// after Close.
func TestBadDrivers(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	asked := []string{DoDescribe, DoPrepare, DoVerify, DoOperate}
	for how, c := range map[string]struct {
		answer string
		want   []string
	}{
		"hang": {"", []string{"no answer to AT within 2s: it hangs, or needs longer", "it was killed", "I hang now"}},
		"die":  {"", []string{"it ended where an answer to AT was expected", "exit status 3", "out of cheese at AT"}},
		"exit": {"", []string{
			"it ended where an answer to AT was expected",
			"exit status 0, without having been asked to stop",
		}},
		"half": {"", []string{
			"it ended where an answer to AT was expected", `after it said "{\"id\":"`,
			"exit status 4",
		}},
		"long": {"", []string{"its answer to AT is longer than a line may be", "it was killed"}},
		"close": {"", []string{
			"it closed its standard output where an answer to AT was expected", "although it still runs",
			"it was killed",
		}},
		"raw": {"Listening on port 80", []string{
			"its answer to AT is not one", `"Listening on port 80"`,
			"print to stderr, stdout is for answers", "it was killed",
		}},
		"ok":       {`{"surplus":1}`, []string{"its answer to AT cannot be read", "surplus"}},
		"refuse":   {"", []string{"actor: it cannot AT: no cheese left; buy some"}},
		"close-in": {"", []string{"it closed its standard input", "although it still runs"}},
	} {
		for _, at := range asked {
			if at != DoVerify && !slices.Contains([]string{"hang", "die", "close", "refuse", "close-in"}, how) {
				continue // how it is met is the same everywhere
			}
			if how == "close-in" && at == DoOperate {
				continue // it has answered; the next request meets it
			}
			t.Run(at+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newStage(t, actor{At: at, How: how, Answer: c.answer}, func(c *Config) {
					if how == "hang" && (at == DoDescribe || at == DoPrepare) {
						c.PrepareWithin, c.DescribeWithin = 2*time.Second, 2*time.Second
					}
				})
				if how == "hang" {
					s.c.Patience = 2 * time.Second
				}
				err := s.enter(t)
				for _, part := range c.want {
					wantError(t, err, strings.ReplaceAll(part, "AT", at))
				}
				if dead := how != "refuse"; err != nil && dead {
					s.wantNoProcess(t)
				}
				s.actor.At = "" // so that it can undo
				for _, a := range s.arms {
					a.program = s.actor.program(t)
				}
				s.close(t)
			})
		}
	}
}

// TestBadAnswers: what is said of lines that are no answers.
func TestBadAnswers(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "an empty line",
		`{"id":7}`:                        "neither ok nor error",
		`{"id":7,"ok":{},"error":"bad"}`:  "holds ok and error",
		`{"id":999,"ok":{}}`:              "it answered request 999 where verify",
		`{"ok":{}}`:                       "has no id",
		`{"id":7,"error":""}`:             "an error without words",
		`{"id":7,"ok":{}} and so on`:      "something follows it",
		`{"id":7,"okay":{}}`:              `unknown field "okay"`,
		`{"id":7,"ok":{"wall":NaN}}`:      "JSON has no NaN",
		`{"id":7,"ok":{"wall":Infinity}}`: "JSON has no Infinity",
		`{"id":7,"ok":true}`:              "its answer to verify cannot be read",
	} {
		ok, err := parseAnswer([]byte(line), Request{ID: 7, Do: DoVerify})
		if err == nil {
			err = decode(DoVerify, ok, &Verified{})
		}
		wantError(t, err, want)
	}
}

// TestBadCosts: a cost that is not possible is rejected.
func TestBadCosts(t *testing.T) {
	for answer, want := range map[string]string{
		`{"calls":4,"total":{"wall":1}}`:          "it made 4 calls where 5 were asked for",
		`{"total":{"wall":1}}`:                    "it made 0 calls where 5 were asked for",
		`{"calls":5,"total":{"wall":-1}}`:         "it counts wall = -1",
		`{"calls":5,"total":{"allocated":1e999}}`: "1e999",
		`{"calls":5,"total":{"wal":1}}`:           `it counts "wal", which is not a metric that tare knows; did you mean "wall"`,
		`{"calls":5,"total":{"response":1}}`:      `it counts "response"`,
		`{"calls":5,"total":{"wall":"1 s"}}`:      "cannot be read",
		`{"calls":5,"totals":{"wall":1}}`:         `unknown field "totals"`,
		`{"calls":5,"total":{"wall":5e9}}`:        "totals of time are in seconds",
		`{"calls":5,"total":{"cpu":5e9}}`:         "totals of time are in seconds",
		`{"calls":5,"total":{"hits":5.5}}`:        "5.5 of hits in 5 calls",
		`{"calls":5,"total":{"error":6}}`:         "6 of error in 5 calls",
		`{"calls":5.5}`:                           "cannot be read",
		`{"calls":-5}`:                            "it made -5 calls",
		"null":                                    "it made 0 calls",
	} {
		var c Cost
		ok, err := parseAnswer([]byte(`{"id":7,"ok":`+answer+`}`), Request{ID: 7, Do: DoOperate})
		if err == nil {
			err = decode(DoOperate, ok, &c)
		}
		if err == nil {
			err = c.valid(5, time.Second)
		}
		wantError(t, err, want)
	}
	for answer, want := range map[string]string{
		`{"calls":5.5}`: "cannot be read", `{"calls":5,"total":{"wall":-1}}`: "it counts wall = -1",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, actor{At: DoOperate, How: "ok", Answer: answer}, nil)
			s.prepared(t)
			_, err := s.sample(t, "work", 5)
			wantError(t, err, want, "it was killed")
			if _, again := s.sample(t, "work", 5); again == nil {
				t.Error("and again it made a batch")
			}
			s.close(t)
		})
	}
}

// TestAnswersMustCountTheSame: all answers must have the same counts.
func TestAnswersMustCountTheSame(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{Cost: map[string]float64{"wall": 1e-9}, Second: map[string]float64{"wall": 1e-9, "hits": 1}},
		nil)
	defer s.close(t)
	s.entered(t)
	if _, err := s.sample(t, "work", 2); err != nil {
		t.Fatal(err)
	}
	_, err := s.sample(t, "work", 2)
	wantError(t, err, "it counted wall of work before, and wall, hits now")
}

// TestShortLivedChildrenAreNotCounted: their CPU time cannot be known from outside, and is not guessed.
func TestShortLivedChildrenAreNotCounted(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{At: DoOperate, How: "spawn", Cost: map[string]float64{"wall": 1e-9}}, nil)
	defer s.close(t)
	s.prepared(t)
	_, err := s.sample(t, "work", 2)
	wantError(t, err, "does not count cpu", "have ended since", `let it count "cpu" itself`)
}

func TestTwoAnswers(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{At: DoVerify, How: "twice"}, nil)
	defer s.close(t)
	err := s.enter(t)
	if err == nil || !strings.Contains(err.Error(), "which nobody asked for") &&
		!strings.Contains(err.Error(), "it answered request") {
		t.Errorf("%v; want that an answer too many was noticed", err)
	}
}

// TestVerifyNeedsAProof: a verification without a check is rejected.
func TestVerifyNeedsAProof(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{At: DoVerify, How: "ok", Answer: `{"checks":[]}`}, nil)
	defer s.close(t)
	wantError(t, s.enter(t), "it verified nothing")
}

// TestVerifyMayProveNoRefusal: what a program says that it has seen in place of a refusal is handed on.
func TestVerifyMayProveNoRefusal(t *testing.T) {
	t.Parallel()
	const said = "it answers; nothing that must be refused was asked"
	for answer, want := range map[string]string{
		`{"checks":["it answers"],"unproved":"` + said + `"}`: said, `{"checks":["it refuses"]}`: "",
	} {
		s := newStage(t, actor{At: DoVerify, How: "ok", Answer: answer}, nil)
		defer s.close(t)
		s.entered(t)
		if got := s.Can().Unproved(baseline()); got != want {
			t.Errorf("%s: %q, want %q", answer, got, want)
		}
	}
}

func TestBadPIDs(t *testing.T) {
	for pids, want := range map[string]string{
		`{"server":1}`:         "which it has not started",
		`{"server":-3}`:        "which it has not started",
		`{"server":999999999}`: "is process 999999999",
		`{"actor":2}`:          "a name of its own",
		`{"generator":2}`:      "a name of its own",
		`{"a b":2}`:            "a name of its own",
		fmt.Sprintf(`{"server":%d}`, os.Getpid()):  "which it has not started",
		fmt.Sprintf(`{"server":%d}`, os.Getppid()): "below which tare itself runs",
	} {
		t.Run(pids, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, actor{At: DoPrepare, How: "ok", Answer: `{"pids":` + pids + `}`}, nil)
			defer s.close(t)
			wantError(t, s.enter(t), want)
		})
	}
}

// TestDriversThatDoNotStopAreKilled, which a note reports.
func TestDriversThatDoNotStopAreKilled(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for name, c := range map[string]struct {
		actor actor
		want  string
	}{
		"ignores stop and the end of its input": {
			actor{Stubborn: true},
			"actor did not end within 1s after it was asked to, and was killed",
		},
		"ends with a status": {
			actor{Exit: 7},
			"actor ended with exit status 7 after it was asked to stop",
		},
		"refuses":      {actor{At: DoStop, How: "refuse"}, "it cannot stop: no cheese left"},
		"dies":         {actor{At: DoStop, How: "die"}, "exit status 3"},
		"ends at once": {actor{At: DoStop, How: "exit"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.actor, func(c *Config) { c.Fresh = true })
			s.grace = 5 * time.Second
			if c.actor.Stubborn {
				s.grace = time.Second
			}
			s.entered(t)
			if err := s.Leave(t.Context(), baseline()); err != nil {
				t.Error(err)
			}
			s.wantNoProcess(t)
			notes := strings.Join(s.Notes(), "\n")
			if c.want == "" && strings.Contains(notes, "stop") || !strings.Contains(notes, c.want) {
				t.Errorf("want %q in:\n%s", c.want, notes)
			}
			s.close(t)
		})
	}
}

func TestTry(t *testing.T) {
	t.Parallel()
	good := &actor{}
	d, err := Try(t.Context(), good.program(t), 0)
	if err != nil || d.Name != "actor" || len(d.Operations) != 2 || d.Took <= 0 {
		t.Errorf("got description %+v, %v", d, err)
	}
	if text, err := os.ReadFile(filepath.Join(good.World, "trace")); string(text) != "describe\nstop\n" {
		t.Errorf("asked %q, %v", text, err)
	}
	_, err = Try(t.Context(), (&actor{At: DoDescribe, How: "die"}).program(t), 0)
	wantError(t, err, "exit status 3", "it wrote to stderr", "out of cheese")
	_, err = Try(t.Context(), Program{Name: "none", Path: "/nowhere/driver"}, 0)
	wantError(t, err, "start none", "/nowhere/driver")
	_, err = Try(t.Context(), Program{Name: "none", Path: "no-such-driver-anywhere"}, 0)
	wantError(t, err, "start none", "no-such-driver-anywhere", "not found")
	_, err = Try(t.Context(), Program{Name: "cat", Path: "cat"}, 0)
	wantError(t, err, "cat: its answer to describe", "print to stderr")
	_, err = Try(t.Context(), Program{Name: "true", Path: "true"}, 0)
	wantError(t, err, "true: ", "ended ", "exit status 0") // at once, or where an answer was expected
	exits := &actor{Exit: 9}
	_, err = Try(t.Context(), exits.program(t), 0)
	wantError(t, err, "exit status 9")
	_, err = Try(t.Context(), (&actor{At: DoDescribe, How: "hang"}).program(t), 200*time.Millisecond)
	wantError(t, err, "no answer to describe within 200ms", "it was killed")
	if !errors.Is(err, ErrLate) {
		t.Errorf("%v is not said to be late", err)
	}
}

// TestDriverHasItsOwnEnvironment: it receives no variable of tare's that it was not given.
func TestDriverHasItsOwnEnvironment(t *testing.T) {
	t.Setenv("TARE_SECRET", "hunter2")
	log := filepath.Join(t.TempDir(), "log")
	for _, p := range []Program{{}, {Env: []string{}}, {Env: []string{"A=b"}}} {
		p.Name, p.Path, p.Args = "env", "/bin/sh", []string{"-c", "env >>" + log}
		if _, err := Try(t.Context(), p, 0); err == nil {
			t.Error("no driver, and no error")
		}
	}
	text, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(text), "hunter2") || !strings.Contains(string(text), "A=b") {
		t.Errorf("got environment %s, %v; want A=b and nothing of tare's", text, err)
	}
}

var _ area.Journal = (*testJournal)(nil)
