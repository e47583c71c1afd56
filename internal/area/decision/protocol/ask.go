package protocol

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"tare/internal/area/decision/model"
	"tare/internal/load"
)

const (
	// askTimeout bounds one request outside of the load, and loadTimeout one that makes a decision point compile policies.
	askTimeout  = 10 * time.Second
	loadTimeout = 2 * time.Minute
	// maxBody is how much of an answer is read outside of the load, and maxAnswer the same with its head and as it is on the wire: net/http reads a
	// head of any length.
	maxBody   = 4 << 20
	maxAnswer = 2*maxBody + 1<<20
)

// A line is one connection for requests outside of the load. It sends the very bytes that the load sends.
type line struct {
	conn  net.Conn
	limit *io.LimitedReader // of conn
	in    *bufio.Reader     // of limit
	spent bool              // the decision point said that it closes the connection
}

// dial connects to the decision point of s.
func dial(ctx context.Context, s *Session) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", s.Addr.String())
	if err != nil {
		return nil, err
	}
	if s.TLS != nil {
		secure := tls.Client(conn, s.secured())
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		conn = secure
	}
	return newLine(conn), nil
}

func newLine(conn net.Conn) *line {
	limit := &io.LimitedReader{R: conn}
	return &line{conn: conn, limit: limit, in: bufio.NewReader(limit)}
}

// secured is the TLS configuration as the load engines use it for HTTP/1.1: with a server name, and without other protocols.
func (s *Session) secured() *tls.Config {
	conf := s.TLS.Clone()
	conf.NextProtos = nil
	if conf.ServerName == "" {
		conf.ServerName = s.Host
		if host, _, err := net.SplitHostPort(s.Host); err == nil {
			conf.ServerName = host
		}
	}
	return conf
}

func (l *line) close() { _ = l.conn.Close() }

// send makes one request and reads its answer within timeout. After an error the line is of no more use.
func (l *line) send(ctx context.Context, raw []byte, timeout time.Duration) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	status, body, err = l.exchange(raw)
	if err != nil && ctx.Err() != nil {
		return 0, nil, fmt.Errorf("no answer within %v: %w", timeout, ctx.Err())
	}
	return status, body, err
}

var (
	errNoHTTP = errors.New("the answer is not HTTP")
	errLong   = fmt.Errorf("the answer is longer than %d bytes", maxBody)
)

func (l *line) exchange(raw []byte) (status int, body []byte, err error) {
	if _, err := l.conn.Write(raw); err != nil {
		return 0, nil, err
	}
	l.limit.N = maxAnswer
	resp, err := http.ReadResponse(l.in, nil)
	if err != nil {
		return 0, nil, l.tooLong(unquoted(err))
	}
	defer resp.Body.Close() //nolint:errcheck // read only
	l.spent = resp.Close
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if len(body) > maxBody {
		return resp.StatusCode, nil, errLong
	}
	return resp.StatusCode, body, l.tooLong(err)
}

// tooLong is an error, or that the answer did not end where it had to.
func (l *line) tooLong(err error) error {
	if err != nil && l.limit.N <= 0 {
		return errLong
	}
	return err
}

// unquoted keeps an answer that is no HTTP out of errors, where net/http would quote it.
func unquoted(err error) error {
	var n net.Error
	if errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return errNoHTTP
}

// do makes one request on a connection of its own.
func (s *Session) do(ctx context.Context, r request, timeout time.Duration) (status int, body []byte, err error) {
	if err := s.Limit.Wait(ctx); err != nil {
		return 0, nil, err
	}
	l, err := dial(ctx, s)
	if err != nil {
		return 0, nil, fmt.Errorf("%s %s: %w", r.method, s.Base+r.path, err)
	}
	defer l.close()
	if status, body, err = l.send(ctx, r.render(s), timeout); err != nil {
		return status, nil, fmt.Errorf("%s %s: %w", r.method, s.Base+r.path, err)
	}
	return status, body, nil
}

// ask asks once, outside of the load, and says what came back. more adds what the protocol says besides the decision; it may be nil.
func (s *Session) ask(ctx context.Context, r request, j judge, more func(body []byte) string) (Answer, error) {
	status, body, err := s.do(ctx, r, askTimeout)
	switch {
	case errors.Is(err, errLong):
		return Answer{Outcome: load.Failed, Status: status, Text: fmt.Sprintf("status %d: %v", status, errLong)}, nil
	case err != nil:
		return Answer{}, err
	}
	o, v, d := j(status, body)
	detail := ""
	if more != nil && d != model.None {
		detail = more(body)
	}
	return Answer{Decision: d, Outcome: o, Status: status, Text: s.tell(status, v, d, detail, body)}, nil
}
