package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	terminal "tare/internal/term"
)

// SARIF writes what a run found wrong as a log of the Static Analysis Results Interchange Format, version 2.1.0: one
// result for each finding, none for what passed. A run that passes and whose counts agree has no results.
func SARIF(w io.Writer, r *Report) error {
	text, err := indented(r.sarifLog())
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = io.WriteString(w, terminal.JSON(text))
	return err
}

// A finding is something wrong with the control, with its budgets or with the run itself.
type finding struct {
	rule    string
	subject []string // what it is about: equal in later runs of the same experiment
	message string
	line    int // in the experiment file; 0: the file as a whole
}

// findings are all findings, in the order of their rules. New kinds of findings are added here, and to sarifRules.
func (r *Report) findings() []finding {
	specific := slices.Concat(r.controlFindings(), r.rulingFindings(), r.breachFindings(), r.answerFindings(),
		r.budgetFindings())
	return append(r.runFindings(len(specific) > 0), specific...)
}

// runFindings say why the run as a whole has no verdict. shown: another finding says already that it does not pass.
func (r *Report) runFindings(shown bool) []finding {
	u := r.unjudged(shown)
	if u == nil {
		return nil
	}
	rule := "run-undecided"
	switch {
	case r.Verdict == Invalid:
		rule = "run-invalid"
	case r.Status.unfinished() != "":
		rule = "run-unfinished"
	}
	return []finding{{rule: rule, message: r.Experiment.Name + ": " + u.Message}}
}

// controlFindings are the treatments whose controls were checked and found not in force.
func (r *Report) controlFindings() []finding {
	var out []finding
	for i := range r.Treatments {
		if t := &r.Treatments[i]; t.NotInForce != "" {
			out = append(out, finding{
				rule: "control-not-in-force", subject: []string{t.ID}, message: t.ID + " was not in force: " + t.NotInForce,
			})
		}
	}
	return out
}

// rulingFindings are the treatments whose controls permit what the baseline's refuses.
func (r *Report) rulingFindings() []finding {
	var out []finding
	for i := range r.Treatments {
		if t := &r.Treatments[i]; len(t.Permits) > 0 {
			out = append(out, finding{rule: "permits-more", subject: []string{t.ID}, message: t.PermitsMore()})
		}
	}
	return out
}

// breachFindings are the trespasses that were permitted, by operation, and the answers that were mixed up.
func (r *Report) breachFindings() []finding {
	var out []finding
	for i := range r.Guard {
		g := &r.Guard[i]
		for _, name := range slices.Sorted(maps.Keys(g.Operations)) {
			if n := g.Operations[name]; n.Permitted > 0 {
				out = append(out, finding{
					rule: "trespass-permitted", subject: []string{g.Treatment, name}, message: name + ": " + n.sentence(),
				})
			}
		}
		if text := g.mixedUp(); text != "" {
			out = append(out, finding{rule: "trespass-permitted", subject: []string{g.Treatment}, message: text})
		}
	}
	return out
}

// answerFindings are wrong answers, and answers that the target counted otherwise than its callers.
func (r *Report) answerFindings() []finding {
	var out []finding
	for _, x := range r.wrongAnswers() {
		out = append(out, finding{rule: "answer-wrong", subject: []string{x.treatment, x.what}, message: x.text})
	}
	for _, x := range r.countDifferences() {
		out = append(out, finding{rule: "counts-disagree", subject: []string{x.treatment, x.what}, message: x.text})
	}
	return out
}

// budgetFindings are the budgets that were not kept. Those of an invalid run say nothing.
func (r *Report) budgetFindings() []finding {
	var out []finding
	for i := range r.Budgets {
		b := &r.Budgets[i]
		f := finding{subject: []string{b.Treatment, b.Text}, line: b.Line}
		switch {
		case r.Verdict == Invalid || b.Verdict == Pass:
			continue
		case b.Verdict == Fail:
			f.rule, f.message = "budget-broken", " is broken: "
		case b.Verdict == NotMeasured:
			f.rule, f.message = "budget-not-measured", " could not be judged: "
		default:
			f.rule, f.message = "budget-undecided", " is undecided: "
		}
		f.message = "The budget " + b.title() + f.message + b.evidence() + r.answersOf(b)
		out = append(out, f)
	}
	return out
}

// The levels of results.
const (
	sarifError   = "error"
	sarifWarning = "warning"
)

// sarifRules are all rules, in the order in which they are listed: what each says, and what to do.
var sarifRules = []sarifRule{
	newRule("run-invalid", sarifError, "The run is invalid",
		"Its figures say nothing about the control: the generator was the limit, the baseline differed from itself, or a "+
			"control was not in force.",
		"Remove the cause that the message names, and run it again. Budgets of an invalid run are not judged."),
	newRule("run-unfinished", sarifError, "The run did not come to its end",
		"It was interrupted or killed, or ended in an error. Its figures cover only what was measured until then.",
		"Continue it with tare run --resume RUN, where RUN is its folder."),
	newRule("run-undecided", sarifWarning, "The run decided nothing", "The run has no verdict, and no budget says why.",
		"Read the reason; more blocks or a longer run usually decide it."),
	newRule("control-not-in-force", sarifError, "A control was not in force",
		"tare checks each control before it measures: what it must refuse was allowed, or its check failed.",
		"Find out why the control did not act: where production has the same setup, it is not protected either."),
	newRule("permits-more", sarifError, "The change permits what was refused before",
		"The same requests were put to the controls of the baseline and of the treatment, before anything was timed.",
		"See whether the change means to permit them. If it does, take it over as the baseline."),
	newRule("trespass-permitted", sarifError, "The control permitted what it must refuse",
		"Among its other calls, tare made some that the control must refuse. It granted at least one of them.",
		"The report says at which rate or under which condition, and has the first of them with request and answer."),
	newRule("answer-wrong", sarifError, "Answers were not the expected ones",
		"The target decided otherwise than the experiment expects, such as a permit of what must be denied.",
		"Compare the policy with the expectations of the experiment file. The record has every call."),
	newRule("counts-disagree", sarifError, "The target counted other answers than its callers got",
		"One of the two counts is wrong, or answers reached callers that the target did not give.",
		"Compare both counts in the report. Until they agree, do not trust the target's own metrics."),
	newRule("budget-broken", sarifError, "A budget is broken",
		"The whole confidence interval of what was measured lies beyond the limit.",
		"Make the control cheaper, or change the limit."),
	newRule("budget-undecided", sarifWarning, "A budget is undecided",
		"The confidence interval reaches to both sides of the limit, or the load was not one under which a pass counts.",
		"Measure more: more blocks (tare run --add-blocks N FILE), a longer load, or a higher rate. The message says what "+
			"would decide it."),
	newRule("budget-not-measured", sarifWarning, "A budget could not be judged",
		"Nothing was measured that the limit could be compared with.",
		"The message says what is missing; tare plan FILE says which metrics a run can judge."),
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifRule struct {
	ID      string    `json:"id"`
	Short   sarifText `json:"shortDescription"`
	Full    sarifText `json:"fullDescription"`
	Help    sarifText `json:"help"`
	Default struct {
		Level string `json:"level"`
	} `json:"defaultConfiguration"`
}

func newRule(id, level, short, full, help string) sarifRule {
	r := sarifRule{ID: id, Short: sarifText{short}, Full: sarifText{full}, Help: sarifText{help}}
	r.Default.Level = level
	return r
}

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver struct {
			Name    string      `json:"name"`
			Version string      `json:"version,omitempty"`
			Rules   []sarifRule `json:"rules,omitempty"`
		} `json:"driver"`
	} `json:"tool"`
	Automation  *sarifAutomation     `json:"automationDetails,omitempty"`
	Invocations []sarifInvocation    `json:"invocations"`
	Bases       map[string]sarifBase `json:"originalUriBaseIds,omitempty"`
	ColumnKind  string               `json:"columnKind"`
	Results     []sarifResult        `json:"results"`
}

type sarifAutomation struct {
	ID string `json:"id"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Start         string              `json:"startTimeUtc"`
	End           string              `json:"endTimeUtc"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
}

type sarifBase struct {
	Description sarifText `json:"description"`
}

type sarifResult struct {
	Rule         string            `json:"ruleId"`
	Level        string            `json:"level"`
	Message      sarifText         `json:"message"`
	Locations    []sarifLocation   `json:"locations"`
	Fingerprints map[string]string `json:"fingerprints"`
	Partial      map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	} `json:"physicalLocation"`
}

type sarifArtifact struct {
	URI  string `json:"uri"`
	Base string `json:"uriBaseId,omitempty"`
}

type sarifRegion struct {
	Line int `json:"startLine"`
}

// runFolder is the base of addresses in the folder of the run.
const runFolder = "RUN"

// sarifLog returns the whole log. It lists only the rules that results refer to.
func (r *Report) sarifLog() *sarifLog {
	findings, seen, taken := r.findings(), map[string]bool{}, map[string]int{}
	run := sarifRun{
		ColumnKind: "unicodeCodePoints", Results: []sarifResult{}, Invocations: []sarifInvocation{r.invocation()},
	}
	for _, f := range findings {
		seen[f.rule] = true
		run.Results = append(run.Results, r.sarifResult(&f, taken))
	}
	run.Tool.Driver.Name, run.Tool.Driver.Version = "tare", sanitize(r.Tool.Version)
	for _, rule := range sarifRules {
		if seen[rule.ID] {
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
		}
	}
	if name := strings.ReplaceAll(sanitize(r.Experiment.Name), "/", "-"); name != "" {
		run.Automation = &sarifAutomation{"tare/" + name + "/"}
	}
	if len(findings) > 0 && r.Experiment.File == "" {
		run.Bases = map[string]sarifBase{runFolder: {sarifText{"The folder of the run"}}}
	}
	return &sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0", Runs: []sarifRun{run},
	}
}

// invocation says when the run was, whether it came to its end, and what the report warns of.
func (r *Report) invocation() sarifInvocation {
	const layout = "2006-01-02T15:04:05.000Z"
	end := r.Started
	if r.Seconds > 0 && r.Seconds < (100*365*24*time.Hour).Seconds() {
		end = end.Add(time.Duration(r.Seconds * float64(time.Second)))
	}
	out := sarifInvocation{
		Successful: r.Status == Complete, Start: r.Started.UTC().Format(layout), End: end.UTC().Format(layout),
	}
	for _, text := range r.Warnings {
		out.Notifications = append(out.Notifications, sarifNotification{sarifWarning, sarifMessage(text)})
	}
	return out
}

// sarifResult returns a finding as a result. taken counts equal fingerprints.
func (r *Report) sarifResult(f *finding, taken map[string]int) sarifResult {
	rule := slices.IndexFunc(sarifRules, func(x sarifRule) bool { return x.ID == f.rule })
	id := r.fingerprint(f)
	if taken[id]++; taken[id] > 1 {
		id += fmt.Sprintf(":%d", taken[id])
	}
	return sarifResult{
		Rule: f.rule, Level: sarifRules[rule].Default.Level, Message: sarifMessage(f.message),
		Locations:    []sarifLocation{r.sarifLocation(f.line)},
		Fingerprints: map[string]string{"tare/v1": id},
		// By this name GitHub tells an alert of an earlier run from a new one.
		Partial: map[string]string{"primaryLocationLineHash": id},
	}
}

// fingerprint is equal for the same finding in later runs, whatever was measured and wherever the line moved.
func (r *Report) fingerprint(f *finding) string {
	h := sha256.New()
	for _, s := range append([]string{f.rule, r.Experiment.Name}, f.subject...) {
		_, _ = fmt.Fprintf(h, "%q\n", s) // a hash accepts everything
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// sarifLocation returns a line of the experiment file. A run whose text is in no file of the user has it in its folder.
func (r *Report) sarifLocation(line int) sarifLocation {
	var out sarifLocation
	if line > 0 {
		out.Physical.Region = &sarifRegion{line}
	}
	file := filepath.ToSlash(sanitize(r.Experiment.File))
	switch {
	case file == "" && line > 0:
		out.Physical.Artifact = sarifArtifact{"experiment.yaml", runFolder}
	case file == "":
		out.Physical.Artifact = sarifArtifact{"record.jsonl", runFolder}
	case filepath.IsAbs(file):
		out.Physical.Artifact.URI = (&url.URL{Scheme: "file", Path: filepath.Clean(file)}).String()
	default:
		out.Physical.Artifact.URI = (&url.URL{Path: filepath.Clean(file)}).String()
	}
	return out
}

// sarifMessage returns a text without what SARIF reads as a placeholder or a link.
func sarifMessage(s string) sarifText {
	return sarifText{sarifEscapes.Replace(cmp.Or(strings.TrimSpace(sanitize(s)), "see the report"))}
}

var sarifEscapes = strings.NewReplacer("{", "{{", "}", "}}", "](", "] (")
