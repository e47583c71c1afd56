package main

import (
	"bytes"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// These tests need nothing of Kubernetes, and are run without it: go test component.go socket.go component_test.go.

// TestRun: a component gets its arguments as its own, after it has said that it is ready, and its exit code is the
// process's.
func TestRun(t *testing.T) {
	defer func(args []string) { os.Args = args }(os.Args)
	in, hold := io.Pipe()
	ended := make(chan struct{})
	var out, errs bytes.Buffer
	p := program{name: "p", stdin: in, stdout: &out, stderr: &errs, end: func() { close(ended) }}
	p.components = map[string]func() int{
		"a": func() int { t.Error("the other one was run"); return 0 },
		"b": func() int {
			if got := strings.Join(os.Args, " "); got != "b --x=1 y z" {
				t.Errorf("arguments %q", got)
			}
			if out.String() != "{\"ready\":{}}\n" {
				t.Errorf("said %q before it ran", &out)
			}
			select {
			case <-ended:
				t.Error("asked to end while it is held")
			default:
			}
			go func() { _ = hold.Close() }() // whoever holds it goes, however
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("it was not asked to end with its standard input")
			}
			return 7
		},
	}
	go func() { _, _ = io.WriteString(hold, "{\"args\": [\"--x=1\", \"y z\"]}\n") }()
	if code := p.run([]string{"b"}); code != 7 || errs.Len() > 0 {
		t.Errorf("exit code %d, %q", code, &errs)
	}
}

// TestRefuses: without a configuration that is understood, nothing runs.
func TestRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args        []string
		stdin, says string
	}{
		"no component":   {nil, "{}\n", "usage: p version, or one of [a b] with"},
		"unknown":        {[]string{"c"}, "{}\n", "usage: "},
		"two":            {[]string{"a", "b"}, "{}\n", "usage: "},
		"no line":        {[]string{"a"}, "", "a: read the configuration: no whole line"},
		"half a line":    {[]string{"a"}, `{"args": []}`, "no whole line"},
		"no JSON":        {[]string{"a"}, "moo\n", "read the configuration"},
		"a typo":         {[]string{"a"}, `{"arg": ["x"]}` + "\n", `unknown field "arg"`},
		"wrong type":     {[]string{"a"}, `{"args": "x"}` + "\n", "read the configuration"},
		"two values":     {[]string{"a"}, `{"args": []} {}` + "\n", "more than one value"},
		"an endless one": {[]string{"a"}, `{"args": ["` + strings.Repeat("x", mostConfig) + `"]}` + "\n", "more than 1048576 bytes"},
	} {
		var out, errs bytes.Buffer
		p := program{name: "p", stdin: strings.NewReader(c.stdin), stdout: &out, stderr: &errs, end: func() {}}
		ran := func() int { t.Errorf("%s: a component was run", name); return 0 }
		p.components = map[string]func() int{"a": ran, "b": ran}
		if code := p.run(c.args); code != 2 || out.Len() > 0 || !strings.Contains(errs.String(), c.says) {
			t.Errorf("%s: exit code %d, said %q and %q", name, code, &out, &errs)
		}
	}
}

func TestVersions(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "k8s.io/api", Version: "v0.36.3"},
		{Path: "k8s.io/kubernetes", Version: "v1.36.3"},
		{Path: "go.etcd.io/etcd/server/v3", Version: "v3.6.7", Replace: &debug.Module{
			Path:    "go.etcd.io/etcd/server/v3",
			Version: "v3.6.8",
		}},
	}}
	if got := versions(info); got != `{"etcd":"v3.6.8","go":"go1.26.8","kubernetes":"v1.36.3","protocol":"2"}` {
		t.Error(got)
	}
	if got := versions(nil); got != `{"protocol":"2"}` {
		t.Error(got)
	}
	var out bytes.Buffer
	if code := (program{stdout: &out}).run([]string{"version"}); code != 0 || !strings.HasPrefix(out.String(), `{"go":"go`) {
		t.Errorf("exit code %d, %q", code, &out)
	}
}

// TestSocket: only a file of a folder that nobody else may enter is an address.
func TestSocket(t *testing.T) {
	private := t.TempDir()
	if err := os.Chmod(private, 0o700); err != nil {
		t.Fatal(err)
	}
	for raw, good := range map[string]bool{
		"unix://etcd.sock": true, "unix://a": true,
		"unix:///tmp/etcd.sock": false, "unix://../etcd.sock": false, "unix://x/y": false, "unix://.x": false,
		"unix://x?y": false, "unix://a@x": false,
		"unix:x": false, "unix://": false, "unixs://x": false, "http://127.0.0.1:2379": false,
		"https://127.0.0.1:2379": false, "": false, ":": false,
	} {
		u, err := socket(raw, private)
		if (err == nil) != good || (good && u.String() != raw) {
			t.Errorf("%q: %v, %v", raw, u, err)
		}
	}
	for _, mode := range []os.FileMode{0o755, 0o710, 0o701, 0o770} {
		if err := os.Chmod(private, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := socket("unix://etcd.sock", private); err == nil || !strings.Contains(err.Error(), "others may enter") {
			t.Errorf("a folder of mode %v: %v", mode, err)
		}
	}
	if _, err := socket("unix://etcd.sock", private+"/none"); err == nil {
		t.Error("a socket in a folder that is not there")
	}
}

func FuzzReadConfig(f *testing.F) {
	for _, line := range []string{
		"", "{}\n", "{\"args\": [\"a\", \"--b=c\"]}\n", "{\"args\": null}\nmore",
		"{\"args\": [1]}\n", "{\"x\": []}\n", "null\n",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args, err := readConfig(strings.NewReader(line))
		if err != nil && args != nil {
			t.Errorf("%q: %q and %v", line, args, err)
		}
		if err == nil && !strings.Contains(line, "\n") {
			t.Errorf("%q was taken for a whole line", line)
		}
	})
}
