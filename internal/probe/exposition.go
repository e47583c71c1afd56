package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"tare/internal/metric"
)

// Exposition reads a metrics endpoint in the Prometheus text format 0.0.4 or OpenMetrics 1.0: garbage collections, heap and goroutines of a
// Go program, collections, heap and metaspace of a JVM (client libraries of Prometheus, Micrometer), and the series that a user names.
type Exposition struct {
	Name string // the subject
	URL  string // http or https
	// Series are further series, as `name` or `name{label="x"}`; labels that are left out match all values, and what matches is summed. By the
	// type that the endpoint declares, each gives a series_total (counters, and counts, sums and buckets of histograms and summaries) or a
	// series_value, with the text written here as the part. A series that is not there gives nothing.
	Series []string
	// Process takes CPU time, resident memory and start time from the endpoint too. It is for processes of other hosts: those of this one
	// are read by Process or Attached, and would count twice.
	Process bool
	// SkipJVM leaves a JVM's values out: Attached and JVM read them already, under other collectors' names.
	SkipJVM bool
	// Header is sent with the request: credentials. It is never part of an error.
	Header http.Header
	// TLS is for https without Client; nil: the system's roots.
	TLS *tls.Config
	// Client keeps its connection between readings, which spares an https target a handshake for each; nil: a connection for each reading.
	// Its own policy on redirects is not asked.
	Client  *http.Client
	Timeout time.Duration // 0: 5 s
}

var _ Probe = Exposition{}

// Subject implements Probe.
func (e Exposition) Subject() string { return e.Name }

// Read implements Probe. Redirects are refused, since they could lead credentials elsewhere; a body of more than 8 MiB, a status other than
// 200 and a text that is no exposition are errors. No error holds a part of the answer, of the header or of the URL's query.
func (e Exposition) Read(ctx context.Context) ([]metric.Sample, error) {
	list, err := e.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("probe %s: metrics of %s: %w", e.Name, e.place(), err)
	}
	return list, nil
}

func (e Exposition) read(ctx context.Context) ([]metric.Sample, error) {
	sets := []ruleSet{goRules}
	if !e.SkipJVM {
		sets = append(sets, jvmRules)
	}
	if e.Process {
		sets = append(sets, processRules)
	}
	t, err := newTally(sets, e.Series)
	if err != nil {
		return nil, err
	}
	timeout := e.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, done, err := e.get(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	types, err := parseExposition(body, t.add)
	if err != nil {
		return nil, err
	}
	out := samples{subject: e.Name}
	t.samples(types, &out)
	return out.list, nil
}

// get asks the endpoint; done ends the connection's use.
func (e Exposition) get(ctx context.Context) (body io.Reader, done func(), err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, http.NoBody)
	if err != nil || (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "" {
		return nil, nil, errors.New("want a URL of http or https")
	}
	if e.Header != nil {
		req.Header = e.Header.Clone()
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1")
	req.Header.Set("Accept-Encoding", "identity") // compressing would cost the target CPU time that is not its work
	client, closeIdle := e.client()
	answer, err := client.Do(req)
	if err != nil {
		closeIdle()
		return nil, nil, bare(err)
	}
	done = func() {
		_ = answer.Body.Close()
		closeIdle()
	}
	if err := accept(answer); err != nil {
		done()
		return nil, nil, err
	}
	return answer.Body, done, nil
}

// accept says what is wrong with an answer's head.
func accept(answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code >= 300 && code <= 399:
		return fmt.Errorf("status %d: redirects are not followed: give the address that it leads to", code)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("status %d: it wants other credentials", code)
	case code != http.StatusOK:
		return fmt.Errorf("status %d, want 200", code)
	case answer.Header.Get("Content-Encoding") != "" && answer.Header.Get("Content-Encoding") != "identity":
		return errors.New("the answer is compressed, though that was not asked for")
	}
	return nil
}

// client gives the one to use, and how to end its connection if it is for this reading only.
func (e Exposition) client() (c *http.Client, closeIdle func()) {
	const headMax = 64 << 10
	c, closeIdle = &http.Client{}, func() {}
	if e.Client != nil {
		*c = *e.Client
	} else {
		t := &http.Transport{TLSClientConfig: e.TLS, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: headMax}
		c.Transport, closeIdle = t, t.CloseIdleConnections
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, closeIdle
}

// place is the URL without what may be secret: user, query and fragment.
func (e Exposition) place() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "(a malformed URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// bare takes the URL out of an error of net/http, and whatever may quote the answer: a hostile endpoint could echo credentials there.
func bare(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	for _, known := range []error{context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF, http.ErrSchemeMismatch} {
		if errors.Is(err, known) {
			return known
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return cert
	}
	return fmt.Errorf("the request cannot be sent or the answer is no HTTP (%T)", err)
}
