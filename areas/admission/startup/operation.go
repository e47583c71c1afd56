package startup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"tare/internal/load"
)

// Name is the operation's name.
const Name = "pod-startup"

// The phases that a call marks.
const (
	// Post is from the request until its answer.
	Post = "post"
	// Scheduled is from the answer until the watch saw the pod on a node.
	Scheduled = "scheduled"
	// Running is from there until the watch saw all containers started.
	Running = "running"
	// Startup is from the request until the watch saw all containers started, by one clock, at the client.
	Startup = "startup"
	// CreatedToWatch is from the pod's creationTimestamp until then: the service level objective's definition. The
	// timestamp is set after mutating admission, and truncated to seconds.
	CreatedToWatch = "created-to-watch"
	// WatchToWatch is from the pod's first event until then, as clusterloader2 measures.
	WatchToWatch = "watch-to-watch"
	// Conditions is from creationTimestamp until the condition Ready's lastTransitionTime, both truncated to seconds, as
	// kube-burner measures.
	Conditions = "conditions"
)

// Pods says which pods the operation creates, and how answers are judged.
type Pods struct {
	// Caller creates them. Its connection lives as long as the Watch.
	Caller *rest.Config
	// Pod is a pod as JSON, with load.CallMark in metadata.name, so that every call has a unique name, and with labels
	// that the Watch selects.
	Pod []byte
	// Weight is the operation's share of the mix; 0: 1. Expect and Answer are the operation's.
	Weight int
	Expect string
	Answer string
	// Judge classifies an answer to the request: an outcome, and an index into Causes or −1. The call waits for the pod if
	// the outcome is load.OK. Nil: status 201 is OK, 429 and 503 are Refused, 5xx is Failed, and anything else is Wrong.
	// It must not keep the body.
	Judge func(status int, body []byte) (load.Outcome, int)
	// Causes are Judge's causes; CauseAnswers, if not nil, has the same length.
	Causes       []string
	CauseAnswers []string
}

// The operation's own causes, after those of Judge.
const (
	causeNameTaken = iota
	causeNoAnswer
	causeUnseen
	causeNeverScheduled
	causeNeverRan
	causeRunningUnseen
	causeWatchDown
	causeWatchFlaps
	causeDeleted
	causeClosed
)

func ownCauses() []string {
	return []string{
		causeNameTaken:      "another call waits for a pod of that name",
		causeNoAnswer:       "the request to create the pod was not answered",
		causeUnseen:         "the pod was created, and never seen by the watch",
		causeNeverScheduled: "never scheduled: the pod was created, and no node was found for it",
		causeNeverRan:       "scheduled, never running: its node did not say that its containers were started",
		causeRunningUnseen:  "running, never seen: the server says so when asked, and the watch did not",
		causeWatchDown:      "the watch was down, so that nothing could be seen of the pod",
		causeWatchFlaps:     "the server ended one watch after the other, so that when the pod ran is not known",
		causeDeleted:        "the pod was deleted before it was seen running",
		causeClosed:         "the watch was closed while the call waited",
	}
}

// Operation returns the operation "pod-startup": it creates pods, which stay. Its calls may run concurrently.
func (w *Watch) Operation(p Pods) (load.Operation, error) {
	o, err := w.operation(p)
	if err != nil {
		return load.Operation{}, fmt.Errorf("operation %s: %w", Name, err)
	}
	return o, nil
}

// Ask returns an operation that asks for pods over the same connection as a dry run: none is created, and the answer is
// the end.
func (w *Watch) Ask(p Pods) (load.Operation, error) {
	s, err := w.starter(p)
	if err != nil {
		return load.Operation{}, fmt.Errorf("ask for a pod: %w", err)
	}
	s.url += "?dryRun=All"
	return load.Operation{Call: func(ctx context.Context, i uint64) load.Result { return s.post(ctx, i).Result }}, nil
}

func (w *Watch) operation(p Pods) (load.Operation, error) {
	s, err := w.starter(p)
	if err != nil {
		return load.Operation{}, err
	}
	return s.operation(p), nil
}

// starter returns what makes the calls for the pods.
func (w *Watch) starter(p Pods) (*starter, error) {
	var pod corev1.Pod
	if err := json.Unmarshal(p.Pod, &pod); err != nil {
		return nil, fmt.Errorf("read the pod: %w", err)
	}
	switch {
	case !strings.Contains(pod.Name, load.CallMark):
		return nil, fmt.Errorf("the pod's name %q does not hold the number of the call", pod.Name)
	case !w.selector.Matches(labels.Set(pod.Labels)):
		return nil, fmt.Errorf("the watch, which selects %s, would not see the pod: its labels are %v",
			w.cfg.Selector, pod.Labels)
	case pod.Namespace != "" && pod.Namespace != w.cfg.Namespace:
		return nil, fmt.Errorf("the pod is of namespace %s, and the watch of %s", pod.Namespace, w.cfg.Namespace)
	case p.CauseAnswers != nil && len(p.CauseAnswers) != len(p.Causes):
		return nil, errors.New("there are not as many answers as causes")
	}
	if p.Caller == nil {
		return nil, errors.New("no user is named to create the pods")
	}
	c, err := w.caller(p.Caller)
	if err != nil {
		return nil, err
	}
	if p.Judge == nil {
		p.Judge = byStatus
	}
	return &starter{
		watch: w, client: c, judge: p.Judge, causes: len(p.Causes), url: c.base.JoinPath("api/v1/namespaces", w.cfg.Namespace,
			"pods").String(),
		body: load.NewTemplate(p.Pod), name: load.NewTemplate([]byte(pod.Name)),
	}, nil
}

func (s *starter) operation(p Pods) load.Operation {
	o := load.Operation{
		Name: Name, Weight: max(1, p.Weight), Expect: p.Expect, Answer: p.Answer,
		Causes: slices.Concat(p.Causes, ownCauses()),
		Call:   s.call, Stuck: s.stuck,
	}
	if p.CauseAnswers != nil {
		o.CauseAnswers = slices.Concat(p.CauseAnswers, make([]string, len(ownCauses())))
	}
	return o
}

// byStatus returns the default Judge.
func byStatus(status int, _ []byte) (load.Outcome, int) {
	switch {
	case status == http.StatusCreated:
		return load.OK, -1
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return load.Refused, -1
	case status >= 500 || status < 200:
		return load.Failed, -1
	}
	return load.Wrong, -1
}

// stuck returns how far call i, which has timed out, got.
func (s *starter) stuck(i uint64) int {
	t := s.watch.track
	open, flaps := s.watch.source.state()
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.awaits[s.nameOf(i)]
	if a == nil {
		return -1
	}
	return s.causes + a.stage(open, flaps)
}

func (s *starter) nameOf(i uint64) string { return string(s.name.AppendTo(nil, i)) }

// stage returns the cause of a wait that timed out. The tracker's lock is held.
func (a *await) stage(open, flaps bool) int {
	switch {
	case a.answered.IsZero():
		return causeNoAnswer
	case a.unseen:
		return causeRunningUnseen
	case flaps:
		return causeWatchFlaps
	case !open:
		return causeWatchDown
	case a.first.IsZero():
		return causeUnseen
	case a.scheduled.IsZero():
		return causeNeverScheduled
	}
	return causeNeverRan
}
