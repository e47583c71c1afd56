package kit

import (
	"context"
	"fmt"
	"net/url"

	"tare/internal/metric"
	"tare/internal/probe"
)

// hintExposed says how to accept that others can read a secret.
const hintExposed = "where that is accepted, say so in the file: expose_secrets: true, and every report will say it"

// Exposure says how others on the network could read the secrets that are sent to u, or get them by answering in its
// place; empty: they could not.
func Exposure(u *url.URL, t *TLS) string {
	secure := u.Scheme == "https" || u.Scheme == "grpcs"
	switch {
	case LoopbackHost(u.Hostname()):
		return ""
	case !secure:
		return fmt.Sprintf("over %s://, which everybody on the way can read", u.Scheme)
	case t != nil && t.Insecure:
		return "to whoever answers, since the server's certificate is not verified"
	}
	return ""
}

// CheckExposure returns an error if others could get the secrets of a section on their way to u, unless allowed is
// true.
func CheckExposure(u *url.URL, t *TLS, section any, allowed bool) error {
	how := Exposure(u, t)
	if how == "" || allowed || len(SentSecrets(section)) == 0 {
		return nil
	}
	mend := "write https:// if the server speaks TLS"
	if t != nil && t.Insecure {
		mend = "name the authority instead: tls: {ca: file.pem}"
	}
	return fmt.Errorf("secrets would go to %s %s: %s; %s", u.Host, how, mend, hintExposed)
}

// ConnectionNotes returns the notes that every report must carry on how the secrets of a section were sent to u.
func ConnectionNotes(u *url.URL, t *TLS, section any) (notes []string) {
	if t != nil && t.Insecure {
		notes = append(notes, NoteInsecure)
	}
	if n := noteExposure(u, t, section); n != "" {
		notes = append(notes, n)
	}
	return notes
}

// noteExposure returns the note that others could read the secrets of a section on their way to u; empty if they could
// not.
func noteExposure(u *url.URL, t *TLS, section any) string {
	how := Exposure(u, t)
	if how == "" || len(SentSecrets(section)) == 0 {
		return ""
	}
	return fmt.Sprintf("secrets were sent to %s %s (expose_secrets)", u.Host, how)
}

// QueueDepth returns how many connections wait in a listen queue of this machine; nil if that cannot be read.
func QueueDepth(ctx context.Context, q probe.ListenQueue) *int {
	samples, err := q.Read(ctx)
	if err != nil {
		return nil
	}
	depth, ok := probe.Find(samples, q.Name, probe.ListenQueueDepth)
	if !ok {
		return nil
	}
	return new(int(depth))
}

// Restartable is a probe of a server that may be restarted: Now returns the probe of the running one.
type Restartable struct {
	Name string // the subject
	Now  func() probe.Probe
}

var _ probe.Probe = Restartable{}

// Subject implements probe.Probe.
func (r Restartable) Subject() string { return r.Name }

// Read implements probe.Probe.
func (r Restartable) Read(ctx context.Context) ([]metric.Sample, error) { return r.Now().Read(ctx) }

// ProcessMetrics returns the metrics of every process of a target that tare can read.
func ProcessMetrics() []string { return []string{"cpu", "rss", "threads", "fds"} }
