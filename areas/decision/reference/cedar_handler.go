package reference

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/cedar-policy/cedar-go"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// errIndeterminate is the planted fault "indeterminate" in AuthZEN, which has no such decision: the evaluation failed.
var errIndeterminate = errors.New("indeterminate: the policies could not be evaluated")

// A decision is AuthZEN's answer to one evaluation.
type decision struct {
	Decision bool             `json:"decision"`
	Context  *decisionContext `json:"context,omitempty"`
}

type decisionContext struct {
	Error decisionError `json:"error"`
}

// A decisionError is how one evaluation of a batch fails while the others are answered.
type decisionError struct {
	Status  int    `json:"status"`
	Message string `json:"message"`
}

func (d *cedarPoint) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+evaluationPath, d.asked(d.evaluation))
	mux.HandleFunc("POST "+evaluationsPath, d.asked(d.evaluations))
	mux.HandleFunc("GET "+metadataPath, metadataDocument)
	mux.HandleFunc("GET /metrics", d.metrics)
	return mux
}

// asked is what both endpoints have in common: the request's name goes back with the answer, a body of a bounded size
// comes in, and an error is status 400 or 500 with text.
func (d *cedarPoint) asked(answer func(body []byte) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("X-Request-Id"); id != "" {
			w.Header().Set("X-Request-Id", id)
		}
		if d.clock.Now().Before(d.readyAt) {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			d.refuse(w, http.StatusRequestEntityTooLarge, err)
			return
		}
		if err != nil {
			d.refuse(w, http.StatusBadRequest, err)
			return
		}
		out, err := answer(body)
		switch {
		case errors.Is(err, errIndeterminate):
			d.refuse(w, http.StatusInternalServerError, err)
		case err != nil:
			d.refuse(w, http.StatusBadRequest, err)
		default:
			d.write(w, out)
		}
	}
}

func (d *cedarPoint) refuse(w http.ResponseWriter, status int, err error) {
	d.counts.errors.Add(1)
	http.Error(w, err.Error(), status)
}

func (d *cedarPoint) write(w http.ResponseWriter, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		d.refuse(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a caller that has gone away is its own concern
}

func (d *cedarPoint) evaluation(body []byte) (any, error) {
	e, err := parseEvaluation(body)
	if err != nil {
		return nil, err
	}
	permit, err := d.cache.of(body, func() (bool, error) { return d.decide(e) })
	if err != nil {
		return nil, err
	}
	return decision{Decision: permit}, nil
}

func (d *cedarPoint) evaluations(body []byte) (any, error) {
	b, err := parseEvaluations(body)
	if err != nil {
		return nil, err
	}
	if len(b.Evaluations) == 0 {
		return d.evaluation(body)
	}
	out := make([]decision, 0, len(b.Evaluations))
	for _, e := range b.Evaluations {
		one, err := d.inBatch(e)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
		if one.Decision == (b.Options.Semantic == permitOnFirstTrue) && b.Options.Semantic != executeAll {
			break
		}
	}
	return map[string][]decision{"evaluations": out}, nil
}

// inBatch keeps an evaluation's own error to itself.
func (d *cedarPoint) inBatch(e evaluation) (decision, error) {
	permit, err := d.decide(e)
	if err == nil || errors.Is(err, errIndeterminate) {
		return decision{Decision: permit}, err
	}
	own := decisionError{Status: http.StatusBadRequest, Message: err.Error()}
	return decision{Context: &decisionContext{Error: own}}, nil
}

// decide asks Cedar, also when a fault is planted: a fault changes the answer and not what it costs.
func (d *cedarPoint) decide(e evaluation) (permit bool, err error) {
	policies := d.policies.Load()
	req, entities, err := e.cedar(policies.Set)
	if err != nil {
		return false, err
	}
	got, why := cedar.Authorize(policies.Policies, entities, req)
	permit = bool(got)
	switch d.answer {
	case alwaysPermit:
		permit = true
	case notApplicableAsPermit:
		permit = permit || (len(why.Reasons) == 0 && !applies(policies.scopes, entities, req))
	case indeterminate:
		return false, errIndeterminate
	}
	d.counts.count(permit, why)
	return permit, nil
}

// applies reports whether any policy, permit or forbid, is about the request.
func applies(scopes *cedar.PolicySet, entities view, req cedar.Request) bool {
	_, why := cedar.Authorize(scopes, entities, req)
	return len(why.Reasons) > 0
}

// metadataDocument is AuthZEN's discovery document.
func metadataDocument(w http.ResponseWriter, r *http.Request) {
	base := "http://" + r.Host
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{ // a caller that has gone away is its own concern
		"policy_decision_point":       base,
		"access_evaluation_endpoint":  base + evaluationPath,
		"access_evaluations_endpoint": base + evaluationsPath,
	})
}

// metrics answers in the Prometheus text format 0.0.4.
func (d *cedarPoint) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = fmt.Fprint(w, d.counts.text(), goMetrics()) // a caller that has gone away is its own concern
}
