// Package apimetrics reads from a kube-apiserver's /metrics how it served its requests.
//
// The names of what is read, in 1.24 and 1.36:
//
//	apiserver_request_duration_seconds                        all requests; labels verb, dry_run, resource, scope, …
//	apiserver_request_sli_duration_seconds                    without webhooks and queues, without dry runs; since 1.27
//	apiserver_request_slo_duration_seconds                    the same, with dry runs, in 1.24; in 1.36 a copy
//	apiserver_admission_controller_admission_duration_seconds labels name, operation, type ("admit", "validate")
//	apiserver_admission_webhook_admission_duration_seconds    labels name, operation, type ("admit", "validating")
//	apiserver_admission_webhook_fail_open_count               labels name, type ("admit", "validating")
//	etcd_request_duration_seconds                             labels operation and resource; type in 1.24
//	apiserver_validating_admission_policy_check_total         labels policy, policy_binding; 1.36: what did not pass
//	apiserver_mutating_admission_policy_check_total           labels policy and error_type
//	process_start_time_seconds
//
// All of them are counters or histograms. Some were summaries before 1.24: only the sum and the count are then read,
// which mean the same.
package apimetrics

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/area"
)

// The families that are read.
const (
	requests   = "apiserver_request_duration_seconds"
	indicator  = "apiserver_request_sli_duration_seconds"
	objective  = "apiserver_request_slo_duration_seconds" // its name before 1.27
	controller = "apiserver_admission_controller_admission_duration_seconds"
	webhook    = "apiserver_admission_webhook_admission_duration_seconds"
	failedOpen = "apiserver_admission_webhook_fail_open_count"
	storage    = "etcd_request_duration_seconds"
	validating = "apiserver_validating_admission_policy_check_total"
	mutating   = "apiserver_mutating_admission_policy_check_total"
	started    = "process_start_time_seconds"
)

// mostRows bounds the number of rows that a text can produce.
const mostRows = 1 << 16

// Parse reads totals since the start of the server from its /metrics, in the Prometheus text format 0.0.4. Requests are
// summed over version, group, dry_run and component; a subresource is part of the resource: "pods/binding". It omits
// requests that are not API calls (/metrics, /healthz) and long-running ones: watches, and connections to pods. Parts
// are summed over rejected, and those of storage over groups. Rows are sorted. Errors give the line's number, never its
// text.
func Parse(text []byte) (*area.Served, error) {
	t := &totals{all: distributions{}, sli: distributions{}, slo: distributions{}, parts: map[partKey]*spent{}}
	err := scan(text, map[string]func(*line) error{
		requests:  func(l *line) error { return t.all.add(l) },
		indicator: func(l *line) error { return t.sli.add(l) },
		objective: func(l *line) error { return t.slo.add(l) },
		controller: func(l *line) error {
			return t.part(l, "admission", l.label("name"), l.label("type")+" "+l.label("operation"))
		},
		webhook: func(l *line) error {
			return t.part(l, "webhook", l.label("name"), l.label("type")+" "+l.label("operation"))
		},
		failedOpen: t.undecided,
		storage:    func(l *line) error { return t.part(l, "storage", storedResource(l), l.label("operation")) },
		started:    func(l *line) (err error) { t.started, err = l.number(); return err },
	})
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return t.served(), nil
}

// PolicyChecks reads how often each ValidatingAdmissionPolicy has objected: denied, warned or written to the audit log.
// kube-apiserver does not count what passes. One evaluation counts once for each failed validation of the policy, each
// binding, and each of the binding's actions. The map is empty before 1.26.
func PolicyChecks(text []byte) (map[string]uint64, error) {
	return checks(text, validating, "policy")
}

// BindingChecks reads the same for each ValidatingAdmissionPolicyBinding: one policy may be many of the user's.
func BindingChecks(text []byte) (map[string]uint64, error) {
	return checks(text, validating, "policy_binding")
}

// MutatingPolicyChecks reads how often each MutatingAdmissionPolicy was applied to a request without an error.
func MutatingPolicyChecks(text []byte) (map[string]uint64, error) {
	return checks(text, mutating, "policy")
}

// KyvernoCounts are what Kyverno's policies did to requests in a namespace.
type KyvernoCounts struct {
	// Objected is how often each policy objected: a rule, or a policy in CEL, that was evaluated to its end and not met.
	// Errors are not counted: they prove nothing.
	Objected map[string]uint64
	// Changed is how often each policy was applied to change an object.
	Changed map[string]uint64
	// Evaluated is how often any of them was evaluated, with any result.
	Evaluated uint64
}

// Kyverno reads what Kyverno's policies did to requests in a namespace from its metrics. Events are left out: Kyverno
// makes them itself, where the object is that they are about.
func Kyverno(text []byte, namespace string) (KyvernoCounts, error) {
	out := KyvernoCounts{Objected: map[string]uint64{}, Changed: map[string]uint64{}}
	count := func(l *line, result string, mutates bool) error {
		if l.label("resource_namespace") != namespace || l.label("resource_kind") == "Event" {
			return nil
		}
		n, err := l.count()
		out.Evaluated += n
		to, counted := out.Objected, "fail"
		if mutates {
			to, counted = out.Changed, "pass"
		}
		if l.label(result) != counted || err != nil {
			return err
		}
		if len(to) >= mostRows {
			return errRows
		}
		to[l.label("policy_name")] += n
		return nil
	}
	err := scan(text, map[string]func(*line) error{
		"kyverno_policy_results_total": func(l *line) error {
			return count(l, "rule_result", l.label("rule_type") == "mutate")
		},
		"kyverno_validating_policy_results_total": func(l *line) error { return count(l, "result", false) },
		"kyverno_mutating_policy_results_total":   func(l *line) error { return count(l, "result", true) },
	})
	if err != nil {
		return KyvernoCounts{}, fmt.Errorf("metrics of Kyverno: %w", err)
	}
	return out, nil
}

func checks(text []byte, family, by string) (map[string]uint64, error) {
	out := map[string]uint64{}
	err := scan(text, map[string]func(*line) error{family: func(l *line) error {
		if l.label("enforcement_action") == "allow" || family == mutating && l.label("error_type") != "no_error" {
			return nil // an evaluation that failed
		}
		if len(out) >= mostRows {
			return errRows
		}
		n, err := l.count()
		out[l.label(by)] += n
		return err
	}})
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return out, nil
}

// totals are the sums of Parse.
type totals struct {
	all, sli, slo distributions
	parts         map[partKey]*spent
	started       float64
}

type partKey struct{ part, name, action string }

type spent struct {
	count   uint64
	seconds float64
}

// undecided adds requests that were admitted because their webhook did not answer.
func (t *totals) undecided(l *line) error {
	p, err := t.at(partKey{area.Undecided, l.label("name"), l.label("type")})
	if err == nil {
		var n uint64
		n, err = l.count()
		p.count += n
	}
	return err
}

func (t *totals) part(l *line, part, name, action string) error {
	if l.suffix != sum && l.suffix != count {
		return nil
	}
	p, err := t.at(partKey{part, name, action})
	if err != nil {
		return err
	}
	if l.suffix == sum {
		s, err := l.number()
		p.seconds += s
		return err
	}
	n, err := l.count()
	p.count += n
	return err
}

// at returns the row with that key.
func (t *totals) at(key partKey) (*spent, error) {
	p := t.parts[key]
	if p == nil {
		if len(t.parts) >= mostRows {
			return nil, errRows
		}
		p = &spent{}
		t.parts[key] = p
	}
	return p, nil
}

// served returns the rows in order.
func (t *totals) served() *area.Served {
	out := &area.Served{Started: t.started}
	sli := t.sli
	if len(sli) == 0 {
		sli = t.slo
	}
	for key, d := range t.all {
		r := area.ServedRequests{
			Verb: key.verb, Resource: key.resource, Scope: key.scope, Count: d.count, DryRuns: d.dryRuns, Seconds: d.seconds,
			Buckets: d.buckets,
		}
		if s := sli[key]; s != nil {
			r.SLICount, r.SLISeconds, r.SLIBuckets = s.count, s.seconds, s.buckets
		}
		out.Requests = append(out.Requests, r)
	}
	for key, p := range t.parts {
		out.Parts = append(out.Parts, area.ServedPart{
			Part: key.part, Name: key.name, Action: key.action, Count: p.count,
			Seconds: p.seconds,
		})
	}
	slices.SortFunc(out.Requests, func(a, b area.ServedRequests) int {
		return compare(a.Resource, b.Resource, a.Verb, b.Verb, a.Scope, b.Scope)
	})
	slices.SortFunc(out.Parts, func(a, b area.ServedPart) int {
		return compare(a.Part, b.Part, a.Name, b.Name,
			a.Action, b.Action)
	})
	return out
}

// compare compares pair by pair.
func compare(pairs ...string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if c := strings.Compare(pairs[i], pairs[i+1]); c != 0 {
			return c
		}
	}
	return 0
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
