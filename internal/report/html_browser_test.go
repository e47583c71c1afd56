package report

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

// harness.html loads each page in frames of several widths, with and without scripts, looks at each, and writes what it
// found as JSON.
//
//go:embed page/testdata/harness.html
var harness string

// collector goes before all scripts of a page and keeps what they complain of.
const collector = `<script>window.complaints=[];window.addEventListener("error",function(e){complaints.push("error: "+e.message)});` +
	`window.addEventListener("unhandledrejection",function(e){complaints.push("rejection: "+e.reason)});` +
	`["error","warn"].forEach(function(k){var f=console[k];console[k]=function(){complaints.push(k+": "+[].join.call(arguments," "));f.apply(console,arguments)}});</script>`

// A look is what the harness saw in one frame.
type look struct {
	Page      string   `json:"page"`
	Name      string   `json:"name"`
	Width     int      `json:"width"`
	Overflow  int      `json:"overflow"` // by how many pixels the page is wider than its window
	Dark      bool     `json:"dark"`
	Scripts   bool     `json:"scripts"` // they ran
	Canvases  int      `json:"canvases"`
	Painted   int      `json:"painted"` // canvases that hold more than one colour
	Unnamed   int      `json:"unnamed"` // canvases that a screen reader cannot name
	Stills    int      `json:"stills"`
	Hidden    int      `json:"hidden"` // stills that are not to be seen
	Drawings  int      `json:"drawings"`
	Blank     int      `json:"blank"` // of the drawings: without a size
	Zoomed    bool     `json:"zoomed"`
	Reset     bool     `json:"reset"`
	Pwned     bool     `json:"pwned"`
	Images    int      `json:"images"`
	Resources int      `json:"resources"`
	Faint     []string `json:"faint"` // texts with too little contrast
	Unreached []string `json:"unreached"`
	Clipped   []string `json:"clipped"` // on a phone: boxes that have more than they show
	Complains []string `json:"complains"`
}

// browser finds Chromium: the variable CHROME names it, or the PATH holds it.
func browser(t *testing.T) string {
	t.Helper()
	hosttest.SkipIfShort(t)
	if name := os.Getenv("CHROME"); name != "" {
		return name
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	hosttest.Missing(t, "there is no Chromium", "apt-get install chromium, or set CHROME")
	return ""
}

// dump loads an address and returns the document when its scripts have come to rest.
func dump(t *testing.T, address string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--no-proxy-server", "--user-data-dir=" +
			t.TempDir(), "--window-size=1400,1000",
		"--virtual-time-budget=60000", "--dump-dom",
	}, flags...)
	cmd := exec.CommandContext(ctx, browser(t), append(args, address)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it may have left behind; mostly there is nothing
	}
	if err != nil {
		if x, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("%v\n%s", err, x.Stderr)
		}
		t.Fatal(err)
	}
	return string(out)
}

// looks shows pages to one browser and returns what was seen of each, by the frame's name.
func looks(t *testing.T, pages map[string]string, flags ...string) map[string]map[string]look {
	t.Helper()
	var mu sync.Mutex
	var unexpected []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		name, kind := path.Split(strings.TrimPrefix(r.URL.Path, "/"))
		page, ok := pages[strings.TrimSuffix(name, "/")]
		switch {
		case r.URL.Path == "/":
			_, _ = w.Write([]byte(harness))
		case ok && kind == "page":
			_, _ = w.Write([]byte(strings.Replace(page, "<head>", "<head>"+collector, 1)))
		case ok && kind == "broken": // the chart library fails
			_, _ = w.Write([]byte(strings.Replace(strings.Replace(page, "<head>", "<head>"+collector, 1), "var uPlot=",
				"var uPlot=undefined,_=", 1)))
		case ok && kind == "strict":
			w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; style-src 'self'")
			_, _ = w.Write([]byte(page))
		default:
			w.WriteHeader(http.StatusNotFound)
			if r.URL.Path != "/favicon.ico" {
				mu.Lock()
				unexpected = append(unexpected, r.URL.Path)
				mu.Unlock()
			}
		}
	}))
	defer server.Close()
	dom := dump(t, server.URL+"/?"+strings.Join(slices.Sorted(maps.Keys(pages)), ","), flags...)
	m := regexp.MustCompile(`(?s)<pre id="seen">(.*?)</pre>`).FindStringSubmatch(dom)
	if m == nil {
		t.Fatalf("the harness wrote nothing:\n%.2000s", dom)
	}
	var all []look
	if err := json.Unmarshal([]byte(html.UnescapeString(m[1])), &all); err != nil {
		t.Fatalf("%v in %.2000s", err, m[1])
	}
	seen := map[string]map[string]look{}
	for name := range pages {
		seen[name] = map[string]look{}
	}
	for _, l := range all {
		seen[l.Page][fmt.Sprintf("%s at %d", l.Name, l.Width)] = l
	}
	mu.Lock()
	defer mu.Unlock()
	if len(unexpected) > 0 {
		t.Errorf("the pages loaded %q", unexpected)
	}
	return seen
}

func TestInBrowser(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, scheme := range []struct {
		name, flag string
		dark       bool
	}{{"light", "--blink-settings=preferredColorScheme=1", false}, {
		"dark", "--blink-settings=preferredColorScheme=0",
		true,
	}} {
		t.Run(scheme.name, func(t *testing.T) {
			t.Parallel() // part of it is waiting for pages to come to rest
			samples, pages := pageSamples(), map[string]string{}
			for _, name := range []string{
				"search", "ladder", "treatments", "hostile", "enforcers", "caches", "rules",
				"unreliable", "stopped", "hostile-compare", "soak", "soak-hostile", "psp",
			} {
				if scheme.dark && (name == "unreliable" || name == "stopped" || name == "soak-hostile") {
					continue // they differ from the comparison by words
				}
				pages[name] = render(t, samples[name])
			}
			for name, frames := range looks(t, pages, scheme.flag) {
				t.Run(name, func(t *testing.T) {
					if len(frames) != 9 {
						t.Fatalf("%d frames were looked at, want 9", len(frames))
					}
					for frame, l := range frames {
						l.check(t, frame, len(samples[name].Timeline), scheme.dark)
					}
				})
			}
		})
	}
}

// check judges one frame of a page with so many live charts.
func (l look) check(t *testing.T, frame string, charts int, dark bool) {
	t.Helper()
	// Without its stylesheet nothing keeps a wide table in a box of its own.
	if l.Overflow > 0 && l.Name != "strict" {
		t.Errorf("%s: the page is %d px wider than its window", frame, l.Overflow)
	}
	if l.Drawings == 0 || l.Blank > 0 || l.Unnamed > 0 {
		t.Errorf("%s: %d drawings, %d of them without a size, %d without a name", frame, l.Drawings, l.Blank, l.Unnamed)
	}
	if l.Pwned || l.Images > 0 || l.Resources > 0 {
		t.Errorf("%s: pwned %v, %d images, %d resources", frame, l.Pwned, l.Images, l.Resources)
	}
	if len(l.Complains) > 0 || len(l.Unreached) > 0 {
		t.Errorf("%s: complaints %q, out of reach of the keyboard %q", frame, l.Complains, l.Unreached)
	}
	if l.Name != "strict" {
		if l.Dark != dark {
			t.Errorf("%s: dark %v, want %v", frame, l.Dark, dark)
		}
		if len(l.Clipped) > 0 {
			t.Errorf("%s: clipped: %q", frame, l.Clipped)
		}
		if len(l.Faint) > 0 {
			t.Errorf("%s: too faint: %q", frame, l.Faint)
		}
	}
	live := 0
	if l.Name == "page" {
		live = charts
	}
	if scripts := l.Name == "page" || l.Name == "broken"; l.Scripts != scripts {
		t.Errorf("%s: scripts %v, want %v", frame, l.Scripts, scripts)
	}
	if l.Hidden != live || l.Canvases != 3*live || l.Painted != 3*live {
		t.Errorf("%s: %d of %d drawings were replaced by %d canvases, %d of them painted; want %d", frame, l.Hidden, l.Stills,
			l.Canvases, l.Painted, live)
	}
	if live > 0 && (!l.Zoomed || !l.Reset) {
		t.Errorf("%s: zoomed %v, reset %v", frame, l.Zoomed, l.Reset)
	}
}
