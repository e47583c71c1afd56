package probe_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/metric"
	"tare/internal/probe"
)

const secret = "hunter2-s3cret"

type hostile struct {
	name string
	h    http.HandlerFunc
	says string
}

// always answers with a text.
func always(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s) }
}

// hostileTexts are answers that are no exposition.
func hostileTexts() []hostile {
	return []hostile{
		{"a page", always("<!DOCTYPE html>\n<html>" + secret), "line 1"},
		{"a late mistake", always("a 1\nb 2\nc{d=\"" + secret + "} 3\n"), "line 3"},
		{"half a number", always("a 1\nb 12"), "cut off"},
		{"too long, and cut in a number", always(strings.Repeat("# HELP a\r\n", 1<<20)), "8 MiB"},
		{"no value", always("a\n"), "no value"},
		{"three values", always("a 1 2 3\n"), "timestamp"},
		{"no number", always("a 1,5\n"), "not a number"},
		{"a label twice named", always("a{b=\"c\" d=\"e\"} 1\n"), "comma"},
		{"a label without value", always("a{b} 1\n"), "without a value"},
		{"a label unquoted", always("a{b=c} 1\n"), "quoted"},
		{"labels without end", always("a{" + strings.Repeat("b=\"c\",", 1000) + "} 1\n"), "128 labels"},
		{"a value without name", always("17\n"), "no name"},
		{"no text", always("a{b=\"\xff\"} 1\n"), "UTF-8"},
		{"a long line", always("a 1\n# HELP a " + strings.Repeat("x", 2<<20) + "\n"), "line 2"},
		{"too long", always(strings.Repeat("a_rather_long_name_of_a_series 1\n", 9<<20/33)), "8 MiB"},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			block := []byte(strings.Repeat("# a comment of thirty-two bytes\n", 4<<10))
			for r.Context().Err() == nil {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}, "8 MiB"},
	}
}

// hostileServers are endpoints that do what none should.
func hostileServers(elsewhere string) []hostile {
	return []hostile{
		{
			"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere, http.StatusFound) },
			"redirects are not followed",
		},
		{"redirect to nonsense", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz/"+r.Header.Get("Authorization"))
			w.WriteHeader(http.StatusMovedPermanently)
		}, ""},
		{"refused", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, r.Header.Get("Authorization"), http.StatusUnauthorized)
		}, "credentials"},
		{"failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, "500"},
		{"echo", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Header.Get("Authorization")+"\n")
		}, "line 1"},
		{"many families", func(w http.ResponseWriter, _ *http.Request) {
			for i := range 100_000 {
				_, _ = fmt.Fprintf(w, "# TYPE a%d gauge\n", i)
			}
		}, "families"},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "a 1\n")
			_ = z.Close()
		}, "compressed"},
		{"cut off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, "a 1\n")
		}, "EOF"},
	}
}

// TestHostileEndpoints: every answer that is no exposition is an error, soon, that holds nothing of the answer or the
// credentials.
func TestHostileEndpoints(t *testing.T) {
	asked := atomic.Int32{}
	elsewhere := serve(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, c := range append(hostileTexts(), hostileServers(elsewhere)...) {
		e := probe.Exposition{
			Name: "pdp", URL: serve(t, c.h) + "?token=" + secret, Series: []string{"a"}, Timeout: time.Minute,
			Header: http.Header{"Authorization": {"Bearer " + secret}},
		}
		list, err := e.Read(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), secret) || len(list) > 0 {
			t.Errorf("%s: %d samples, %v; want an error that says %q and no secret", c.name, len(list), err, c.says)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a redirect was followed %d times", n)
	}
}

// TestHostileParts: what a label may hold does not reach a terminal, nor do thousands of labels reach a record.
func TestHostileParts(t *testing.T) {
	const count = "jvm_gc_collection_seconds_count{gc=\"%s\"} 1\n"
	few := readAll(t, probe.Exposition{Name: "pdp", URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, count, "\x1b[31mred\\n"+strings.Repeat("é", 500))
	})})
	want := []metric.Sample{named("gc_count", "?[31mred?"+strings.Repeat("é", 45), 1)}
	if d := cmp.Diff(want, few); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	many := readAll(t, probe.Exposition{Name: "pdp", URL: serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 5000 {
			_, _ = fmt.Fprintf(w, count, fmt.Sprint(i))
		}
	})})
	if len(many) != 0 {
		t.Errorf("%d samples of 5000 collectors, want none", len(many))
	}
}

// TestNoHTTP: what the answer's first line holds is in no error.
func TestNoHTTP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte("hunter2-s3cret\r\n\r\n"))
			_ = c.Close()
		}
	}()
	defer func() {
		_ = ln.Close()
		<-done
	}()
	address := ln.Addr().String()
	for _, url := range []string{
		"http://" + address + "/metrics", "http://user:hunter2-s3cret@" + address, "https://" + address,
		"ftp://" + address + "/hunter2-s3cret?hunter2", "http://", "http://%zz/hunter2-s3cret", "",
	} {
		_, err := probe.Exposition{Name: "pdp", URL: url, Header: http.Header{"X": {"hunter2-s3cret"}}}.Read(t.Context())
		if err == nil || (strings.Contains(err.Error(), "hunter2-s3cret") && !strings.HasPrefix(url, "ftp")) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestSlowEndpoint(t *testing.T) {
	drip := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "a 1\n")
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	if _, err := (probe.Exposition{URL: drip, Timeout: 50 * time.Millisecond}).Read(t.Context()); !errors.Is(err,
		context.DeadlineExceeded) {
		t.Errorf("%v, want context.DeadlineExceeded", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (probe.Exposition{URL: drip}).Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want context.Canceled", err)
	}
}
