package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/rigs/hosttest"
)

// TestExamplesAreValid reads every example and every template as `tare validate` does, and wants no finding, not even a
// warning.
func TestExamplesAreValid(t *testing.T) {
	exampleExperiments(t)
}

// exampleExperiments returns all examples and templates by name.
func exampleExperiments(t *testing.T) map[string]*config.Experiment {
	t.Helper()
	t.Chdir(filepath.Join("..", "..")) // they name files from there
	files, err := filepath.Glob(filepath.Join("areas", "*", "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	sources := map[string][]byte{}
	for _, file := range files {
		if sources[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, ar := range areas() {
		for _, question := range config.Templates(ar) {
			if sources["template "+ar.Name()+"-"+question], err = config.Template(ar, design.Question(question)); err != nil {
				t.Fatal(err)
			}
		}
	}
	out := map[string]*config.Experiment{}
	for name, src := range sources {
		if ar := areaOf(string(src)); !hasArea(ar) {
			hosttest.Untried(t, "this tare has no area "+ar, "build it with the area")
			continue
		}
		e, found := config.Parse(name, src, config.List(areas()))
		if len(found) > 0 {
			t.Errorf("%s: got findings %v, want none", name, found)
		}
		if e != nil {
			out[name] = e
		}
	}
	return out
}

// TestRejectedBudgetsSuggestAcceptedOnes crosses every example and template with every budget. A budget that a
// rejection suggests is accepted, or rejected for another reason; every metric that an area forecasts is one that
// budgets know.
func TestRejectedBudgetsSuggestAcceptedOnes(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, allAreas...)
	metrics := []string{"capacity", "slo_capacity", "permitted", "revoke", "pool_wait", "nothing"}
	for _, m := range metric.Known() {
		metrics = append(metrics, m.Name)
	}
	for _, m := range budget.ProbedMetrics() {
		metrics = append(metrics, m.Name)
	}
	suggestion := regexp.MustCompile(`^write (".*")$`)
	cells := map[string][2]int{} // accepted and refused, by area and question
	for name, e := range exampleExperiments(t) {
		scope := e.Scope()
		arms, forecast := map[string]budget.Arm{}, scope.Of // which takes longer than to judge a budget
		scope.Of = func(x *design.Treatment) budget.Arm {
			if _, known := arms[x.ID]; !known {
				arms[x.ID] = forecast(x)
			}
			return arms[x.ID]
		}
		cell := e.Area + " " + string(e.Question)
		for _, x := range scope.Treatments {
			arm := scope.Of(&x)
			if len(arm.Operations) == 0 && e.Area != "exec" || len(arm.Metrics) == 0 && arm.Unread == "" && !arm.Open {
				t.Errorf("%s: no forecast for %s: %+v", name, x.ID, arm)
			}
			for _, m := range arm.Metrics {
				if !slices.Contains(metrics, m) {
					t.Errorf("%s: no budget knows the metric %q", name, m)
				}
			}
		}
		for _, m := range metrics {
			for _, rest := range []string{
				" <= 1", " <= 1ms", " <= 5%", " <= +5%", " >= 10/s", " <= 1MiB", ".p99 <= 1ms",
				" drift <= 1ms/h", " <= 1ms at 20/s",
			} {
				b, err := budget.Parse(m + rest)
				if err != nil {
					t.Fatal(err)
				}
				r, n := scope.Refuse(b), cells[cell]
				if r == nil {
					cells[cell] = [2]int{n[0] + 1, n[1]}
					continue
				}
				cells[cell] = [2]int{n[0], n[1] + 1}
				if column := budget.Column(b.Text, r.Part); column < 1 || column > len(b.Text) || r.Reason == "" {
					t.Errorf("%s: %s: rejected at column %d: %v", name, b.Text, column, r)
				}
				if s := suggestion.FindStringSubmatch(r.Write); s != nil {
					text, err := strconv.Unquote(s[1])
					if err != nil {
						t.Fatal(err)
					}
					again, err := budget.Parse(text)
					if err != nil {
						t.Errorf("%s: %s: the suggestion cannot be parsed: %v", name, b.Text, err)
					} else if r2 := scope.Refuse(again); r2 != nil && r2.Part == r.Part && r2.Reason == r.Reason {
						t.Errorf("%s: %s: the suggestion %q is rejected: %v", name, b.Text, text, r2)
					}
				}
			}
		}
	}
	if len(cells) < 12 {
		t.Errorf("got only %v", cells)
	}
	for cell, n := range cells {
		if n[0] == 0 || n[1] == 0 {
			t.Errorf("%s: %d budgets are accepted, %d rejected", cell, n[0], n[1])
		}
	}
}
