package build_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
)

// TestStepEndsWithItsContext and with everything that it started.
func TestStepEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := build.Step{Path: "/bin/sh", Args: []string{"-c", "sleep 300 & sleep 300"}}.Run(ctx)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(began); d > 4*time.Second {
		t.Errorf("ended after %v: something held its output open", d)
	}
}

// TestStepReportsLines as they come, whole, and all of them at the end.
func TestStepReportsLines(t *testing.T) {
	var lines []string
	out, err := build.Step{
		Path: "/bin/sh", Args: []string{
			"-c",
			`printf 'on'; printf 'e\ntwo\n\n'; printf 'thr' >&2; printf 'ee\r\n' >&2; printf "$X"; exit 3`,
		},
		Env: []string{"X=four"}, Progress: func(line string) { lines = append(lines, line) },
	}.Run(t.Context())
	if diff := cmp.Diff([]string{"one", "two", "", "three"}, lines); diff != "" {
		t.Error(diff)
	}
	if out != "one\ntwo\n\nthree\r\nfour" || err == nil || err.Error() != "exit status 3" {
		t.Errorf("got output %q, %v; want its lines and exit status 3", out, err)
	}
}

// TestStepKeepsSecrets: a command gets the variables that it needs, those that it is given, and nothing else of the
// environment.
func TestStepKeepsSecrets(t *testing.T) {
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "JAVA_TOOL_OPTIONS", "JDK_JAVAC_OPTIONS", "HTTPS_PROXY"} {
		t.Setenv(name, "secret-"+name)
	}
	t.Setenv("HOME", "/home/x")
	out, err := build.Step{
		Path: "/usr/bin/env", Env: []string{"X=four"},
		Keep: []string{"HTTPS_PROXY", "NOT_THERE"},
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"X=four", "HOME=/home/x", "HTTPS_PROXY=secret-HTTPS_PROXY"} {
		if !strings.Contains(out, want+"\n") {
			t.Errorf("it lacks %s: %s", want, out)
		}
	}
	if strings.Count(out, "secret-") != 1 || strings.Contains(out, "NOT_THERE") {
		t.Errorf("it gets more than it is to: %s", out)
	}
}

func TestTail(t *testing.T) {
	got := build.Tail("0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n\n")
	if got != "2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13" {
		t.Errorf("got tail %q, want lines 2 to 13", got)
	}
	if got := build.Tail(""); got != "" {
		t.Errorf("got tail %q of nothing", got)
	}
}
