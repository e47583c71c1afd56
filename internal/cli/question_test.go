package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/run"
	"tare/internal/run/drive"
	"tare/rigs/toy"
)

// newQuestion returns a question that exists only in this test: does the target answer at all, at the rates of the
// file?
func newQuestion() *question.Question {
	return &question.Question{
		Name: "pulse", Asks: "does it answer at all?",
		Drive: question.Search, Answer: question.Rate,
		LeastTreatments: 1,
		Needs:           func(o area.Offers) area.Offer { return o.AnyRate },
		CheckTreatments: func(f question.File) {
			if f.Given("baseline") {
				f.Refuse("baseline", "a pulse has nothing to hold its treatments against")
			}
		},
		CheckLoad: func(f question.File) { f.Missing("load.rates", "question", "pulse needs load.rates: [50/s]") },
		Form:      question.Form{Load: question.LoadForm{Required: []string{"rates"}}},

		MaxConnections: 7, AbortAfter: 3 * time.Second,
		Budgets: budget.Rules{
			Question: "pulse", Rates: true,
			Calls: []budget.Kind{{Metric: metric.Error, Quantiles: []string{"mean"}, AtRate: true}},
		},
		Takes: func(f question.Forecast) string { return "the time that a pulse takes: " + f.Duration.String() },
	}
}

// TestNewQuestionNeedsOnlyItsEntry adds a question to the list and takes it through every step that a file goes
// through.
func TestNewQuestionNeedsOnlyItsEntry(t *testing.T) {
	srv := httptest.NewServer(toy.Server(0))
	defer srv.Close()
	t.Chdir(t.TempDir())
	good := "name: blink\narea: toy\nquestion: pulse\ntarget: {url: \"" + srv.URL + "\"}\n" +
		"load: {rates: [50/s], duration: 1s}\nbudget: [error <= 50% at 50/s]\n"
	if code, out := runFile(t, good, "validate"); code == 0 || !strings.Contains(out, "pulse") {
		t.Errorf("before the question is in the list: exit code %d\n%s", code, out)
	}
	question.AddForTest(t, newQuestion())
	for want, text := range map[string]string{
		"pulse needs load.rates: [50/s]":                     strings.Replace(good, "rates: [50/s], ", "", 1),
		"a pulse has nothing to hold its treatments against": good + "baseline: {preset: a}\n",
		"the question pulse does not measure response":       strings.Replace(good, "error <=", "response.p99 <=", 1),
		"the question pulse offers many rates":               strings.Replace(good, " at 50/s", "", 1),
		"area timer does not answer pulse: a batch has its":  strings.Replace(good, "area: toy", "area: timer", 1),
		"a drift needs the question soak, and this is pulse": strings.Replace(good, "error <= 50%", "error drift <= 5%/h", 1),
	} {
		if code, out := runFile(t, text, "validate"); code != ExitUsage || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
	expectFile(t, good, "validate", "x.yaml  ok")
	expectFile(t, good, "plan", "blink: pulse of toy", "the time that a pulse takes: 1s", "50/s, the highest of the rates")
	expectFile(t, good, "run", "pulse", "50/s", "error <= 50% at 50/s", "a server of yours may be no toy")
	expectFile(t, "", "list", "toy        pulse     yes", "timer      pulse     no: a batch has its")
	records, err := filepath.Glob("results/blink-*")
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, error %v", records, err)
	}
	code, out := runTare(t, "report", records[0], "-o", "json")
	if code != 0 && code != ExitInvalid || !strings.Contains(out, `"question":"pulse"`) &&
		!strings.Contains(out, `"question": "pulse"`) {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if n := strings.Count(out, "a server of yours may be no toy"); n != 1 {
		t.Errorf("the target's warning is there %d times:\n%s", n, out)
	}
}

// single is a drive that only this test has: it makes single calls, each on a new connection.
var single = question.Drive{Name: "single"}

const singleCalls = 5

// measureSingle measures one trial after another, and records how many of its calls succeeded.
func measureSingle(ctx context.Context, s *run.Stage, plan []design.Trial) error {
	for _, trial := range plan {
		one := func(ctx context.Context, arms []*run.Arm) error { return callOneByOne(ctx, arms[0]) }
		if err := s.Measure(ctx, one, trial); err != nil {
			return err
		}
	}
	return nil
}

func callOneByOne(ctx context.Context, a *run.Arm) (err error) {
	stream, err := a.OpenStream(ctx, a.Trial.Seed, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	good := 0
	for i := range uint64(singleCalls) {
		if stream.Fresh(ctx, 0, i, a.Load.Timeout).Outcome.Good() {
			good++
		}
		a.Tell(run.Event{Phase: run.Measuring, Treatment: a.Trial.Treatment, Trial: a.Trial.Index + 1, Detail: good})
	}
	return errors.Join(
		a.Writer.Step(a.Trial.Treatment, a.Trial.Block, "single", good),
		a.Audit(load.Progress{}, stream.Progress(), record.Generator{Seconds: stream.Now().Seconds()}),
	)
}

// viewSingle prints one line for each call.
func viewSingle(s *drive.Screen) func(run.Event) {
	return func(e run.Event) {
		if good, ok := e.Detail.(int); ok {
			s.Say(fmt.Sprintf("%s  %d good answers so far", s.Name, good))
		}
	}
}

// analyzeSingle writes what measureSingle recorded into the notes of the report.
func analyzeSingle(rec *record.Record, rep *report.Report) error {
	for _, t := range rec.Trials {
		for _, s := range t.Steps {
			rep.Notes = append(rep.Notes,
				fmt.Sprintf("%s: %s of %d single calls were answered well", t.Treatment, s.Payload, singleCalls))
		}
	}
	return nil
}

// TestNewDriveNeedsOnlyItsEntries takes a question that measures in its own way through a run, its live view and its
// report. It adds only what is in this file: a value of question.Drive, an entry of the list of drives, and one of the
// list of analyses.
func TestNewDriveNeedsOnlyItsEntries(t *testing.T) {
	srv := httptest.NewServer(toy.Server(0))
	defer srv.Close()
	t.Chdir(t.TempDir())
	q := newQuestion()
	q.Drive, q.Answer = single, question.Answer{Name: "notes"}
	q.CheckLoad, q.Form = func(question.File) {}, question.Form{}
	question.AddForTest(t, q)
	file := "name: blink\narea: toy\nquestion: pulse\ntarget: {url: \"" + srv.URL + "\"}\n"
	const unknown = `this tare cannot measure question "pulse"`
	if code, out := runFile(t, file, "run"); code != ExitError || !strings.Contains(out, unknown) {
		t.Errorf("before the drive is in its list: exit code %d, want %q in\n%s", code, unknown, out)
	}
	drive.AddForTest(t, single, drive.Drive{
		Drive: run.Drive{Measure: measureSingle, Interrupted: record.Dropped}, View: viewSingle,
	})
	analyze.AddForTest(t, single, analyzeSingle)
	expectFile(t, file, "plan", "blink: pulse of toy")
	expectFile(t, file, "run", "blink  5 good answers so far", "default: 5 of 5 single calls were answered well")
}

// TestNewQuestionIsInTheSchema: editors know a question as soon as it is in the list.
func TestNewQuestionIsInTheSchema(t *testing.T) {
	question.AddForTest(t, newQuestion())
	schema, err := config.Schema(config.List(toy.Areas()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"pulse"`, "pulse (does it answer at all?)"} {
		if !bytes.Contains(schema, []byte(want)) {
			t.Errorf("%s is not in the schema", want)
		}
	}
}

// expectFile runs a command, on a file with text unless that is empty. On a busy host a run may be invalid.
func expectFile(t *testing.T, text, command string, wants ...string) {
	t.Helper()
	code, out := runFile(t, text, command)
	if code != 0 && code != ExitInvalid {
		t.Errorf("%s: exit code %d\n%s", command, code, out)
	}
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("%s: want %q in\n%s", command, want, out)
		}
	}
}

func runFile(t *testing.T, text, command string) (int, string) {
	t.Helper()
	if text == "" {
		return runTare(t, command)
	}
	if err := os.WriteFile("x.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return runTare(t, command, "x.yaml")
}

// runTare runs tare in this process and returns its exit code and everything that it prints.
func runTare(t *testing.T, args ...string) (int, string) {
	t.Helper()
	return runWith(t, toy.Areas(), args...)
}

// runWith runs a tare that has these areas.
func runWith(t *testing.T, areas []area.Area, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	code := Main(t.Context(), Env{
		Args: append([]string{"tare"}, args...), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: os.Getenv,
		Areas: areas,
	})
	return code, out.String()
}

// TestValidateNeedsAFile: a command line without a file is a mistake of the command line.
func TestValidateNeedsAFile(t *testing.T) {
	if code, out := runWith(t, nil, "validate"); code != ExitUsage || !strings.Contains(out, "at least one FILE") {
		t.Errorf("exit %d: %s", code, out)
	}
}
