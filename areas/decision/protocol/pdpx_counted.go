package protocol

import (
	"context"
	"fmt"
	"strconv"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
)

// A CountCheck is what a decision point counted while it answered Permit.
type CountCheck struct {
	// Counted is the decision that it counted; None: its counts are not conclusive, or it did not answer Permit.
	Counted model.Decision
	// Text says so for people.
	Text string
}

const (
	// countedAsks is how often a question is asked between two readings of the counts, and countTries how often that is
	// tried: other callers of the decision point are counted too.
	countedAsks = 3
	countTries  = 5
)

// counts are decisions that were counted.
type counts struct{ permit, deny, notApplicable, indeterminate float64 }

func (c counts) minus(d counts) counts {
	return counts{
		c.permit - d.permit, c.deny - d.deny, c.notApplicable - d.notApplicable,
		c.indeterminate - d.indeterminate,
	}
}

func (c counts) total() float64 { return c.permit + c.deny + c.notApplicable + c.indeterminate }

// countedPDPX reads the decisions in GET statistics. The counts are of all callers, since the decision point's start.
func countedPDPX(ctx context.Context, s *Session) (map[string]float64, error) {
	t := newTalk(s)
	defer t.conn.Close()
	c, err := t.counts(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		model.Permit.String(): c.permit, model.Deny.String(): c.deny,
		model.NotApplicable.String(): c.notApplicable, model.Indeterminate.String(): c.indeterminate,
	}, nil
}

// checkPDPXCounts compares answers with the statistics: ONAP's guard application answers Permit when no policy is about
// a request, and when its policies could not be evaluated; only the statistics tell these from a permit.
func checkPDPXCounts(ctx context.Context, s *Session, q model.Question) (CountCheck, error) {
	c, err := callPDPX(s, q)
	if err != nil {
		return CountCheck{}, err
	}
	t := newTalk(s)
	defer t.conn.Close()
	var last CountCheck
	for range countTries {
		before, err := t.counts(ctx)
		if err != nil {
			return CountCheck{}, err
		}
		for range countedAsks {
			got, err := t.ask(ctx, c)
			if err != nil {
				return CountCheck{}, err
			}
			if got.Decision != model.Permit {
				return CountCheck{Text: got.Text}, nil
			}
		}
		after, err := t.counts(ctx)
		if err != nil {
			return CountCheck{}, err
		}
		if last = judgeCounts(about(q), after.minus(before)); last.Counted != model.None {
			return last, nil
		}
	}
	return last, nil
}

// A talk is several requests on one connection: where there are several decision points behind an address, the same one
// answers and counts.
type talk struct {
	session *Session
	conn    oneshot.Conn
}

func newTalk(s *Session) *talk { return &talk{session: s, conn: oneshot.Conn{Client: s.client()}} }

// do makes one request. One that fails on a connection that has served others, which the decision point may have
// closed, is made again, once.
func (t *talk) do(ctx context.Context, r request) (status int, body []byte, err error) {
	for {
		served := t.conn.IsOpen()
		a, err := t.conn.Do(ctx, r.render(t.session), askTimeout)
		if err == nil {
			return a.Status, a.Body, nil
		}
		if !served || ctx.Err() != nil {
			return 0, nil, r.errorf(t.session, err)
		}
	}
}

func (t *talk) ask(ctx context.Context, c call) (Answer, error) {
	status, body, err := t.do(ctx, c.request)
	if err != nil {
		return Answer{}, err
	}
	return t.session.answer(status, body, c), nil
}

func (t *talk) counts(ctx context.Context) (counts, error) {
	c, err := callPDPX(t.session, model.Question{Name: pdpxStatistics})
	if err != nil {
		return counts{}, err
	}
	status, body, err := t.do(ctx, c.request)
	if err != nil {
		return counts{}, fmt.Errorf("read statistics: %w", err)
	}
	if o, v, _ := c.judge(status, body); o != load.OK {
		return counts{}, fmt.Errorf("read statistics: %s", t.session.describe(status, v, model.None, "", body))
	}
	var f [4][]byte
	jsonscan.Pick(body, f[:], pdpxCounters()...) // the judge has seen that they are there
	var n [4]float64
	for i, raw := range f {
		if n[i], err = strconv.ParseFloat(string(raw), 64); err != nil {
			return counts{}, fmt.Errorf("read statistics: %s: %w", pdpxCounters()[i], err)
		}
	}
	return counts{n[0], n[1], n[2], n[3]}, nil
}

// about says what a question is about.
func about(q model.Question) string {
	r, err := readPDPXRequest(q.Body)
	if err != nil {
		return q.Name
	}
	return r.about(nil)
}

// judgeCounts judges the counts that were added while a question was answered Permit countedAsks times. Others may have
// been counted as well, so a count proves something only where it is too small: fewer permits than were answered.
func judgeCounts(about string, added counts) CountCheck {
	switch {
	case added.permit < 0 || added.deny < 0 || added.notApplicable < 0 || added.indeterminate < 0:
		return CountCheck{Text: "the PDP's counts went back: it was restarted, or there are several behind this address"}
	case added.total() < countedAsks:
		return CountCheck{Text: fmt.Sprintf("the PDP counted %g decisions while it made %d: there may be several behind "+
			"this address, and its counts prove nothing",
			added.total(), countedAsks)}
	case added.permit >= countedAsks && added.total() > countedAsks:
		return CountCheck{Text: fmt.Sprintf("others ask this PDP too: it counted %g decisions, of which %d are ours, so "+
			"that its counts are not conclusive",
			added.total(), countedAsks)}
	case added.permit >= countedAsks:
		return CountCheck{Counted: model.Permit, Text: "the PDP counts Permit"}
	case added.notApplicable >= countedAsks-added.permit && added.notApplicable > 0:
		return CountCheck{
			Counted: model.NotApplicable,
			Text:    "no policy is deployed for " + about + ": the PDP counts NotApplicable and answers Permit",
		}
	case added.indeterminate > 0:
		return CountCheck{
			Counted: model.Indeterminate,
			Text:    "the policies for " + about + " could not be evaluated: the PDP counts Indeterminate and answers Permit",
		}
	}
	return CountCheck{Counted: model.Deny, Text: "the PDP counts Deny for " + about + " and answers Permit"}
}
