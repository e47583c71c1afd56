package probe_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tare/internal/metric"
	"tare/internal/probe"
)

// serve gives the URL of an endpoint that always answers so.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/metrics"
}

func serveFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/expositions/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(b) })
}

func named(m, part string, v float64) metric.Sample {
	return metric.Sample{Subject: "pdp", Metric: m, Part: part, Value: v}
}

// expositions have what is read of each of the files in testdata/expositions.
var expositions = []struct {
	file string
	e    probe.Exposition
	want []metric.Sample
}{
	{"micrometer.prom", probe.Exposition{Process: true, Series: []string{
		`http_server_requests_seconds_count`,
		`http_server_requests_seconds_count{uri="/policy/pdpx/v1/decision"}`,
		`http_server_requests_seconds_count{uri="/policy/pdpx/v1/decision",status="200"}`,
		`http_server_requests_seconds_count{status="500"}`,
		`process_cpu_usage`,
	}}, []metric.Sample{
		named("gc_count", "G1 Young Generation", 13),
		named("gc_count", "end of major GC", 2),
		named("gc_time", "G1 Young Generation", 0.15),
		named("gc_time", "end of major GC", 0.5),
		named("heap_used", "", 24<<20),
		named("heap_committed", "", 96<<20),
		named("metaspace", "", 4.5e7),
		named("cpu", "", 2.5),
		named("started", "", 1.795259e9),
		named("series_total", `http_server_requests_seconds_count`, 143),
		named("series_total", `http_server_requests_seconds_count{uri="/policy/pdpx/v1/decision"}`, 103),
		named("series_total", `http_server_requests_seconds_count{uri="/policy/pdpx/v1/decision",status="200"}`, 100),
	}},
	{"micrometer.prom", probe.Exposition{SkipJVM: true}, nil},
	{"javaclient.prom", probe.Exposition{Process: true}, []metric.Sample{
		named("gc_count", "ZGC Cycles", 15),
		named("gc_count", "ZGC Pauses", 45),
		named("gc_time", "ZGC Pauses", 0.004),
		named("heap_used", "", 8e7),
		named("heap_committed", "", 1e8),
		named("metaspace", "", 4e7),
		named("cpu", "", 33.25),
		named("rss", "", 2.5e8),
		named("started", "", 1795259070.245),
	}},
	{"javaclient.prom", probe.Exposition{
		SkipJVM: true,
		Series:  []string{"process_cpu_seconds_total", "process_cpu_seconds_total"},
	}, []metric.Sample{
		named("series_total", "process_cpu_seconds_total", 33.25),
	}},
	{"openmetrics.txt", probe.Exposition{Series: []string{
		`decisions_total`,
		`decisions_total{rule="say \"yes\""}`,
		`decisions_total{ rule = "a\\b\nc, }" }`,
		`decisions_created`,
		`latency_seconds_count`,
		`latency_seconds_sum`,
		`latency_seconds_bucket{le="0.1"}`,
		`depth`,
		`depth{queue="out"}`,
		`depth{queue="out",host=""}`,
		`low`,
		`odd`,
		`{"utf8.name"}`,
		`{"utf8.name","a.b"="c"}`,
		`quiet`,
		`quiet{quantile="0.9"}`,
		`quiet{quantile="0.5"}`,
		`quiet_count`,
		`this`,
	}}, []metric.Sample{
		named("series_total", `decisions_total`, 22),
		named("series_total", `decisions_total{rule="say \"yes\""}`, 17),
		named("series_total", `decisions_total{ rule = "a\\b\nc, }" }`, 5),
		named("series_value", `decisions_created`, 1795259000),
		named("series_total", `latency_seconds_count`, 11),
		named("series_total", `latency_seconds_sum`, 324789.5),
		named("series_total", `latency_seconds_bucket{le="0.1"}`, 8),
		named("series_value", `depth`, 7),
		named("series_value", `depth{queue="out"}`, 4),
		named("series_value", `depth{queue="out",host=""}`, 4),
		named("series_value", `low`, -2.5),
		named("series_value", `odd`, 1000),
		named("series_value", `{"utf8.name"}`, 9),
		named("series_value", `{"utf8.name","a.b"="c"}`, 9),
		named("series_value", `quiet{quantile="0.9"}`, 2),
		named("series_total", `quiet_count`, 0),
	}},
}

func TestExpositions(t *testing.T) {
	for _, c := range expositions {
		c.e.Name, c.e.URL = "pdp", serveFile(t, c.file)
		got := readAll(t, c.e)
		if d := cmp.Diff(c.want, got, cmpopts.EquateApprox(1e-12, 0)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, d)
		}
	}
}

// goMetrics answers with this program's own figures, in the names and types of Prometheus's client library for Go.
func goMetrics(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_, _ = fmt.Fprintf(w, `# HELP go_gc_duration_seconds A summary of the wall-time pause (stop-the-world) duration in garbage collection cycles.
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="0"} 2.2e-05
go_gc_duration_seconds{quantile="1"} %g
go_gc_duration_seconds_sum %g
go_gc_duration_seconds_count %d
# TYPE go_goroutines gauge
go_goroutines %d
# TYPE go_memstats_heap_inuse_bytes gauge
go_memstats_heap_inuse_bytes %g
# TYPE go_memstats_heap_released_bytes gauge
go_memstats_heap_released_bytes %g
# TYPE go_memstats_heap_sys_bytes gauge
go_memstats_heap_sys_bytes %g
`, float64(m.PauseNs[(m.NumGC+255)%256])/1e9, float64(m.PauseTotalNs)/1e9, m.NumGC, runtime.NumGoroutine(),
		float64(m.HeapInuse), float64(m.HeapReleased), float64(m.HeapSys))
}

// TestExpositionOfAGoProgram reads this program through its endpoint and compares with what its runtime says.
func TestExpositionOfAGoProgram(t *testing.T) {
	e := probe.Exposition{Name: "pdp", URL: serve(t, goMetrics)}
	var was, is runtime.MemStats
	runtime.ReadMemStats(&was)
	before := readAll(t, e)
	keep := make([]byte, 8<<20)
	for range 5 {
		runtime.GC()
	}
	after := readAll(t, e)
	runtime.ReadMemStats(&is)
	delta := probe.Delta(before, after)
	collections, parts := sumParts(delta, probe.GCCount)
	if most := float64(is.NumGC - was.NumGC); collections < 5 || collections > most || parts != 1 {
		t.Errorf("%v collections, want 5 to %v", collections, most)
	}
	if spent, most := first(sumParts(delta, probe.GCTime)), float64(is.PauseTotalNs-was.PauseTotalNs)/1e9; spent <= 0 ||
		spent > most*(1+1e-9) {
		t.Errorf("%v s of collections, want at most %v", spent, most)
	}
	used, _ := probe.Find(after, "pdp", probe.HeapUsed)
	committed, _ := probe.Find(after, "pdp", probe.HeapCommitted)
	if used < float64(len(keep)) || committed < used || committed > float64(is.HeapSys) {
		t.Errorf("heap: %v used of %v, want at least %d", used, committed, len(keep))
	}
	if n, ok := probe.Find(after, "pdp", probe.Goroutines); !ok || n < 2 {
		t.Errorf("%v goroutines", n)
	}
	runtime.KeepAlive(keep)
}

func first(v float64, _ int) float64 { return v }

// TestExpositionKeepsItsConnection: with a client of the caller's, and credentials, many readings are one connection.
func TestExpositionKeepsItsConnection(t *testing.T) {
	var connections, refused atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Accept-Encoding") != "identity" ||
			!strings.HasPrefix(r.Header.Get("Accept"), "text/plain") {
			refused.Add(1)
		}
		goMetrics(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	header := http.Header{"Authorization": {"Bearer x"}}
	kept := probe.Exposition{Name: "pdp", URL: s.URL, Header: header, Client: s.Client()}
	for range 5 {
		readAll(t, kept)
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	alone := probe.Exposition{
		Name: "pdp", URL: s.URL, Header: header,
		TLS: s.Client().Transport.(*http.Transport).TLSClientConfig,
	}
	for range 2 {
		readAll(t, alone)
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
	if len(header) != 1 || refused.Load() != 0 {
		t.Errorf("%d requests with other headers; the caller's: %v", refused.Load(), header)
	}
	if _, err := (probe.Exposition{URL: s.URL}).Read(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
}

func TestExpositionNamesTheInvalidSeries(t *testing.T) {
	if _, err := (probe.Exposition{URL: "http://127.0.0.1:1", Series: []string{"a b"}}).Read(t.Context()); err == nil ||
		!strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("%v, want the series", err)
	}
}
