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

	"tare/internal/mask"
	"tare/internal/metric"
)

// Exposition reads a metrics endpoint in the Prometheus text format 0.0.4 or OpenMetrics 1.0: garbage collections, heap
// and goroutines of a Go program; collections, heap and metaspace of a JVM (Prometheus client libraries, Micrometer);
// and the series that the user names.
type Exposition struct {
	Name string // the subject
	URL  string // http or https
	// Series are further series, as `name` or `name{label="x"}`. Omitted labels match all values, and matching samples are
	// summed. By the type that the endpoint declares, each gives a series_total (counters; counts, sums and buckets of
	// histograms and summaries) or a series_value, with the text written here as the part. A series that is missing gives
	// no sample.
	Series []string
	// Process also reads CPU time, resident memory and start time. Set it for processes on other hosts only: local ones
	// are read by Process or Attached and would count twice.
	Process bool
	// SkipJVM leaves out a JVM's values: Attached and JVM read them already, under other collectors' names.
	SkipJVM bool
	// Header is sent with the request, such as credentials. No error quotes it.
	Header http.Header
	// TLS is used for https if Client is nil; nil: the system's roots.
	TLS *tls.Config
	// Client keeps its connection between readings, which saves a TLS handshake for each; nil: one connection for each
	// reading. Its CheckRedirect is ignored.
	Client  *http.Client
	Timeout time.Duration // 0: 5 s
}

var _ Probe = Exposition{}

// Subject implements Probe.
func (e Exposition) Subject() string { return e.Name }

// Read implements Probe. It fails on a redirect, which could send credentials elsewhere, on a status other than 200, on
// a body of more than 8 MiB, and on a text that is no exposition. No error quotes the answer, the header or the URL's
// query.
func (e Exposition) Read(ctx context.Context) ([]metric.Sample, error) {
	list, err := e.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("probe %s: metrics of %s: %w", e.Name, e.redactedURL(), err)
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

// get requests the endpoint; done releases the connection.
func (e Exposition) get(ctx context.Context) (body io.Reader, done func(), err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL, http.NoBody)
	if err != nil || (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "" {
		return nil, nil, errors.New("want a URL of http or https")
	}
	if e.Header != nil {
		req.Header = e.Header.Clone()
	}
	req.Header.Set("Accept", "text/plain;version=0.0.4;q=1,application/openmetrics-text;version=1.0.0;q=0.8,*/*;q=0.1")
	req.Header.Set("Accept-Encoding", "identity") // compressing would add to the CPU time that is measured
	client, closeIdle := e.client()
	answer, err := client.Do(req)
	if err != nil {
		closeIdle()
		return nil, nil, redactedError(err)
	}
	done = func() {
		_ = answer.Body.Close()
		closeIdle()
	}
	if err := checkHead(answer); err != nil {
		done()
		return nil, nil, err
	}
	return answer.Body, done, nil
}

// checkHead returns an error unless the answer's status and type are those of an exposition.
func checkHead(answer *http.Response) error {
	switch code := answer.StatusCode; {
	case code >= 300 && code <= 399:
		return fmt.Errorf("status %d: redirects are not followed: give the address that it leads to", code)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("status %d: the endpoint does not accept these credentials", code)
	case code != http.StatusOK:
		return fmt.Errorf("status %d, want 200", code)
	case answer.Header.Get("Content-Encoding") != "" && answer.Header.Get("Content-Encoding") != "identity":
		return errors.New("the answer is compressed, though that was not asked for")
	}
	return nil
}

// client returns the client to use, and how to close its connection if it is for this reading only.
func (e Exposition) client() (c *http.Client, closeIdle func()) {
	const headMax = 64 << 10
	c, closeIdle = &http.Client{}, func() {}
	if e.Client != nil {
		*c = *e.Client
	} else {
		t := &http.Transport{
			TLSClientConfig: e.TLS, DisableKeepAlives: true, DisableCompression: true,
			MaxResponseHeaderBytes: headMax,
		}
		c.Transport, closeIdle = t, t.CloseIdleConnections
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, closeIdle
}

// redactedURL returns the URL without what may be secret: user, query and fragment.
func (e Exposition) redactedURL() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "(a malformed URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// redactedError removes the URL, and whatever may quote the answer, from an error of net/http: a hostile endpoint could
// echo credentials there.
func redactedError(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	for _, known := range []error{
		context.DeadlineExceeded, context.Canceled, io.EOF, io.ErrUnexpectedEOF,
		http.ErrSchemeMismatch,
	} {
		if errors.Is(err, known) {
			return known
		}
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return mask.Answer(cert)
	}
	return fmt.Errorf("the request cannot be sent or the answer is no HTTP (%T)", err)
}
