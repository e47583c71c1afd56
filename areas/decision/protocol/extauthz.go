package protocol

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"strings"

	"google.golang.org/grpc/codes"

	"tare/areas/decision/model"
	"tare/internal/load"
)

// extAuthz returns the adapter for Envoy's external authorization (envoy.service.auth.v3.Authorization/Check) over
// gRPC.
//
//	request   CheckRequest: the source's principal; method, path, host and headers of an HTTP request; context
//	          extensions. See attributesOf. A question's body is a whole one as JSON:
//	          {"attributes":{"request":{"http":{"method":"GET","path":"/"}}}}
//	answer    CheckResponse: status.code 0 is Permit, 7 (PERMISSION_DENIED) and 16 (UNAUTHENTICATED) are Deny, 5
//	          (NOT_FOUND) is NotApplicable, and any other Indeterminate: Envoy denies, but nothing was decided. As in
//	          Envoy, status alone decides, and an empty message is Permit.
//	refusals  gRPC statuses. They are no decisions: Envoy applies failure_mode_allow to them.
//	metadata  the session's credentials as authorization, and its headers
//
// A call that cannot be sent ends after failPause at the earliest, so that a closed loop against a dead target does not
// spin.
func extAuthz() Adapter {
	return Adapter{
		Name: "ext-authz", Help: "Envoy external authorization over gRPC",
		Schemes: []string{"grpc", "grpcs"}, Binary: true, title: "ext-authz",
		decisions: []model.Decision{model.Permit, model.Deny, model.NotApplicable},
		body:      validCheck, operation: checkOperation, ask: askCheck,
	}
}

const checkMethod = "/envoy.service.auth.v3.Authorization/Check"

// validCheck says what is wrong with the body of a question; one without a body is rendered from its fields.
func validCheck(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	_, err := readAttributes(body)
	return err
}

// checkOperation returns the timed call. The connections are the session's: Close it in the end.
func checkOperation(s *Session, q model.Question) (load.Operation, error) {
	m, err := checkRequest(s, q)
	if err != nil {
		return load.Operation{}, err
	}
	lines, err := s.grpcLines()
	if err != nil {
		return load.Operation{}, err
	}
	o := operationOf(q, "CheckResponse that says "+decisionNames[q.Want])
	o.Call = func(ctx context.Context, i uint64) load.Result {
		r := lines.check(ctx, i, m)
		o, v, _ := r.judge(q.Want)
		return r.result(o, v)
	}
	return o, nil
}

// askCheck asks on a connection of its own.
func askCheck(ctx context.Context, s *Session, q model.Question) (Answer, error) {
	m, err := checkRequest(s, q)
	if err != nil {
		return Answer{}, err
	}
	if err := s.Limit.Wait(ctx); err != nil {
		return Answer{}, err
	}
	lines, err := newGRPCLines(s, 1)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r := lines.check(ctx, 0, m)
	if err := lines.close(); err != nil {
		return Answer{}, fmt.Errorf("close the connection: %w", err)
	}
	o, v, d := r.judge(q.Want)
	if o == load.ConnFailed || o == load.Timeout {
		if alert, ok := alertIn(r.text); ok {
			return Answer{}, fmt.Errorf("check: %w", alert)
		}
		return Answer{}, fmt.Errorf("check: %s", quote(s.redact(r.text)))
	}
	return Answer{Decision: d, Outcome: o, Status: int(r.result(o, v).Status), Text: s.describeCheck(r, v, d)}, nil
}

// alertIn returns the alert of TLS with which the server ended the connection. gRPC hands on only its words.
func alertIn(text string) (tls.AlertError, bool) {
	for n := range math.MaxUint8 + 1 {
		if alert := tls.AlertError(n); strings.Contains(text, "remote error: "+alert.Error()) {
			return alert, true
		}
	}
	return 0, false
}

// describeCheck says in words what came.
func (s *Session) describeCheck(r checked, v Verdict, d model.Decision) string {
	switch {
	case r.code != codes.OK:
		return fmt.Sprintf("gRPC status %v: %s, it says: %s", r.code, Causes()[v], quote(s.redact(r.text)))
	case d == model.None:
		return fmt.Sprintf("%s: %d bytes", Causes()[v], len(r.body))
	}
	text := fmt.Sprintf("the PDP answered %s (status %v", decisionNames[d], codes.Code(r.response.code))
	if len(r.response.message) > 0 {
		text += ", " + quote(s.redact(string(r.response.message)))
	}
	if r.response.denied != 0 {
		text += fmt.Sprintf(", HTTP %d", r.response.denied)
	}
	return text + ")"
}

// decision returns what the message says.
func (r checkResponse) decision() model.Decision {
	switch codes.Code(r.code) { //nolint:exhaustive // a code that is none of these is one in which nothing was decided
	case codes.OK:
		return model.Permit
	case codes.PermissionDenied, codes.Unauthenticated:
		return model.Deny
	case codes.NotFound:
		return model.NotApplicable
	}
	return model.Indeterminate
}

// judge compares the answer with the expected decision.
func (r checked) judge(want model.Decision) (load.Outcome, Verdict, model.Decision) {
	if r.code != codes.OK {
		o, v := r.refusal()
		return o, v, model.None
	}
	if !r.whole {
		return load.Wrong, NotProto, model.None
	}
	d := r.response.decision()
	o, v := judgeDecision(want, d)
	return o, v, d
}

// refusal returns what a gRPC status means that is not OK.
func (r checked) refusal() (load.Outcome, Verdict) {
	if r.tooLong {
		return load.Failed, TooLong
	}
	switch r.code { //nolint:exhaustive // the others are OtherStatus
	case codes.DeadlineExceeded, codes.Canceled:
		if !r.answered {
			return load.Timeout, Fine
		}
		return load.Failed, statusVerdict(r.code)
	case codes.Unavailable:
		if !r.answered {
			return load.ConnFailed, Unavailable
		}
		return load.Refused, Unavailable
	case codes.ResourceExhausted:
		return load.Refused, Exhausted
	case codes.Unauthenticated, codes.PermissionDenied, codes.InvalidArgument, codes.NotFound:
		return load.Wrong, statusVerdict(r.code)
	}
	return load.Failed, statusVerdict(r.code)
}

// statusVerdict returns the verdict for a gRPC status.
func statusVerdict(c codes.Code) Verdict {
	switch c { //nolint:exhaustive // the others are OtherStatus
	case codes.Unavailable:
		return Unavailable
	case codes.DeadlineExceeded:
		return DeadlineExceeded
	case codes.ResourceExhausted:
		return Exhausted
	case codes.Unimplemented:
		return Unimplemented
	case codes.Internal, codes.Unknown:
		return InternalError
	case codes.Unauthenticated:
		return WrongCredentials
	case codes.PermissionDenied:
		return NotAllowed
	case codes.InvalidArgument:
		return SchemaError
	case codes.NotFound:
		return NoSuchPolicy
	case codes.FailedPrecondition:
		return NotReady
	}
	return OtherStatus
}
