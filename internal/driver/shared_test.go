package driver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
	"tare/rigs/hosttest"
)

// several returns an actor that takes eight calls at once, each of which takes about 20 ms.
func several(a actor) actor {
	d := guarded()
	d.AtOnce = 8
	a.Describe, a.Takes = d, 20*time.Millisecond
	return a
}

// TestSeveralAtOnce: calls to a program that takes several at once do not wait for each other, and each gets its own
// answer, also when the program is replaced meanwhile.
func TestSeveralAtOnce(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	s := newGuard(t, several(actor{Permits: 100}))
	defer s.close(t)
	got := count(t.Context(), s.operation(t, "forged"), 400)
	if got[load.Denied] != 396 || got[load.Permitted] != 4 {
		t.Errorf("%v", got)
	}
	text, err := os.ReadFile(filepath.Join(s.actor.World, "at-once"))
	if most, e := strconv.Atoi(string(text)); errors.Join(err, e) != nil || most < 4 || most > 8 {
		t.Errorf("%q calls of eight callers were under way at once, %v", text, errors.Join(err, e))
	}
	if got := count(t.Context(), s.operation(t, "work"), 80); got[load.OK] != 80 {
		t.Errorf("work %v", got)
	}
	forged, done := s.operation(t, "forged"), make(chan map[load.Outcome]int)
	go func() { done <- count(t.Context(), forged, 160) }()
	time.Sleep(50 * time.Millisecond)
	if _, err := s.Conditions(baseline())[0].Impose(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-done; got[load.ConnFailed] == 0 || got[load.ConnFailed]+got[load.Denied]+got[load.Permitted] != 160 {
		t.Errorf("over a restart %v", got)
	}
	if got := count(t.Context(), forged, 80); got[load.Denied]+got[load.Permitted] != 80 {
		t.Errorf("after it %v", got)
	}
}

// TestImposed: a condition that the program offers is in force from its begin to its end, whether it takes one call at
// a time or several.
func TestImposed(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]actor{"one": {}, "several": several(actor{})} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.Offers, a.Describe = map[string]string{"reload": "its rules go"}, nil
			s := newOffering(t, a, name == "several")
			defer s.close(t)
			forged, all := s.operation(t, "forged"), s.Conditions(baseline())
			c := all[len(all)-1]
			if c.Name != "reload" || c.Does != "its rules go" {
				t.Fatalf("%+v", all)
			}
			lift, err := c.Impose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := count(t.Context(), forged, 16); got[load.Permitted] != 16 {
				t.Errorf("imposed: %v", got)
			}
			if err := lift(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := count(t.Context(), forged, 16); got[load.Denied] != 16 {
				t.Errorf("lifted: %v", got)
			}
		})
	}
}

// newOffering is newGuard of a program that may offer the condition reload.
func newOffering(t *testing.T, a actor, atOnce bool) *stage {
	t.Helper()
	a.Describe = guarded()
	if atOnce {
		a.Describe.AtOnce = 8
	}
	s := newStage(t, a, func(c *Config) {
		c.Env.Trespasses, c.Fresh, c.Conditions = true, true, []string{"reload"}
	})
	s.entered(t)
	return s
}

// TestUnknownConditions: a program that offers a condition of another name, or without saying what it is, is refused.
func TestUnknownConditions(t *testing.T) {
	t.Parallel()
	for text, offers := range map[string]map[string]string{
		"none of reload": {"earthquake": "it shakes"}, "does not say": {"reload": ""},
	} {
		s := newStage(t, actor{Describe: guarded(), Offers: offers}, func(c *Config) {
			c.Env.Trespasses, c.Fresh, c.Conditions = true, true, []string{"reload"}
		})
		wantError(t, s.enter(t), text)
		s.close(t)
	}
}

// TestStarvedProgram: a starved program still answers, and runs freely afterwards.
func TestStarvedProgram(t *testing.T) {
	t.Parallel()
	s := newGuard(t, actor{})
	defer s.close(t)
	forged := s.operation(t, "forged")
	lift, err := s.Conditions(baseline())[1].Impose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for time.Since(began) < 300*time.Millisecond {
		if got := count(t.Context(), forged, 8); got[load.Denied] != 8 {
			t.Errorf("%v", got)
		}
	}
	if err := lift(t.Context()); err != nil {
		t.Error(err)
	}
	if got := count(t.Context(), forged, 400); got[load.Denied] != 400 {
		t.Errorf("afterwards %v", got)
	}
}

// TestStarvedIsInterrupted: a run that ends while its program is starved leaves nothing behind.
func TestStarvedIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newGuard(t, several(actor{}))
	lift, err := s.Conditions(baseline())[1].Impose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.close(t)
	s.wantClean(t)
	if err := lift(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSharedMisbehaviour: of several calls under way each ends when the program dies, hangs, or answers what nobody
// asked.
func TestSharedMisbehaviour(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	for name, c := range map[string]struct {
		actor actor
		says  string
	}{
		"die":    {actor{At: DoOperate, How: "die"}, "it ended where an answer to operate was expected"},
		"raw":    {actor{At: DoOperate, How: "raw", Answer: `{"id":999,"ok":{}}`}, "which nobody asked for"},
		"no id":  {actor{At: DoOperate, How: "raw", Answer: "moo"}, "which nobody asked for"},
		"refuse": {actor{At: DoOperate, How: "refuse"}, "no cheese left"},
		"hang":   {actor{At: DoOperate, How: "hang"}, "no answer to operate within"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := several(c.actor)
			s := newStage(t, a, func(c *Config) { c.Env.Trespasses, c.Fresh, c.Patience = true, true, time.Second })
			s.prepared(t)
			if err := s.Enter(t.Context(), baseline()); err != nil {
				t.Fatal(err)
			}
			defer s.close(t)
			forged := s.operation(t, "forged")
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			got := count(ctx, forged, 16)
			if got[load.ConnFailed]+got[load.Failed] != 16 || (got[load.Failed] == 16) != (name == "refuse") {
				t.Errorf("%v", got)
			}
			if all := strings.Join(s.Notes(), "\n"); !strings.Contains(all, c.says) {
				t.Errorf("notes lack %q:\n%s", c.says, all)
			}
		})
	}
}
