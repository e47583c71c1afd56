package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/areas/decision/model"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
)

// askTimeout bounds one request outside of the load, and loadTimeout one that makes a decision point compile policies.
const (
	askTimeout  = 10 * time.Second
	loadTimeout = 2 * time.Minute
)

// client reaches the decision point of s outside of the load.
func (s *Session) client() oneshot.Client {
	return oneshot.Client{Addr: s.Addr, TLS: s.TLS, Limit: s.Limit}
}

// errorf says which request failed.
func (r request) errorf(s *Session, err error) error {
	return fmt.Errorf("%s %s: %w", r.method, s.Base+r.path, err)
}

// do makes one request on a connection of its own.
func (s *Session) do(ctx context.Context, r request, timeout time.Duration) (status int, body []byte, err error) {
	a, err := s.client().Do(ctx, r.render(s), timeout)
	if err != nil {
		return a.Status, nil, r.errorf(s, err)
	}
	return a.Status, a.Body, nil
}

// ask makes a call once, outside of the load, and says what came back.
func (s *Session) ask(ctx context.Context, c call) (Answer, error) {
	status, body, err := s.do(ctx, c.request, askTimeout)
	switch {
	case errors.Is(err, oneshot.ErrTooLong):
		return Answer{Outcome: load.Failed, Status: status, Text: fmt.Sprintf("status %d: %v", status, oneshot.ErrTooLong)},
			nil
	case err != nil:
		return Answer{}, err
	}
	return s.answer(status, body, c), nil
}

// answer returns what came back to a call in words, as its judge judges it.
func (s *Session) answer(status int, body []byte, c call) Answer {
	o, v, d := c.judge(status, body)
	detail := ""
	if c.more != nil && (d != model.None || v == NoDecision) {
		detail = c.more(body)
	}
	out := Answer{Decision: d, Outcome: o, Status: status, Text: s.describe(status, v, d, detail, body)}
	if c.listed != nil && (v == Fine || v == ListHasMore || v == ListLacks) {
		out.Listed = s.shownOf(c.listed(body))
	}
	return out
}

// shownOf are the names of a list that may be shown as they are; nil if not all may, or if there are too many.
func (s *Session) shownOf(names []string) []string {
	hidden := func(name string) bool { return quote(s.redact(name)) != name }
	if len(names) > mostListed || slices.ContainsFunc(names, hidden) {
		return nil
	}
	return names
}
