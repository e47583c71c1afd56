package hosttest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this test binary be another package's.
func TestMain(m *testing.M) {
	if os.Getenv("TARE_TEST_OTHER") != "" {
		leave, err := share()
		if err != nil {
			panic(err)
		}
		fmt.Println("shared")
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
		return
	}
	// These tests have locks of their own: they measure nothing.
	dir, err := os.MkdirTemp("", "hosttest-")
	if err != nil || os.Setenv("TMPDIR", dir) != nil {
		panic(err)
	}
	code := Sharing(m).Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// otherPackage starts a process that shares the host until its input is closed. It returns when the process has begun
// to wait, and a channel that says when the process shares the host.
func otherPackage(t *testing.T) (shares <-chan bool, end func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "TARE_TEST_OTHER=1", sharedBy+"=")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan bool, 1)
	go func() {
		line, _ := bufio.NewReader(out).ReadString('\n')
		said <- line == "shared\n"
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return said, func() { _ = in.Close() }
}

func TestAloneWaitsForOthersAndKeepsThemWaiting(t *testing.T) {
	first, end := otherPackage(t)
	if !<-first {
		t.Fatal("the first process did not share the host")
	}
	time.AfterFunc(50*time.Millisecond, end)
	var second <-chan bool
	outer := t
	t.Run("alone", func(t *testing.T) {
		Alone(t)
		second, _ = otherPackage(outer)
		select {
		case <-second:
			t.Error("another package ran beside a test that has the host alone")
		case <-time.After(2 * grace):
		}
	})
	t.Run("next", func(t *testing.T) {
		Alone(t)
		t.Run("subtest", func(t *testing.T) { Alone(t) })
		select {
		case <-second:
			t.Error("another package came between two tests that have the host alone")
		case <-time.After(2 * grace):
		}
	})
	select {
	case <-second:
	case <-time.After(10 * time.Second):
		t.Error("the host stayed reserved after the tests")
	}
}

func TestAloneNamesWhoRuns(t *testing.T) {
	shares, _ := otherPackage(t)
	if !<-shares {
		t.Fatal("the process did not share the host")
	}
	_, err := lockBefore(time.Now(), host.lock)
	if err == nil || !strings.Contains(err.Error(), "hosttest.test (process ") {
		t.Errorf("got %v, want the name and id of the process", err)
	}
	if err := lockShared(); err != nil {
		t.Fatal(err)
	}
}

func TestRowsAreReadAgain(t *testing.T) {
	want := Row{"nginx is not installed", "apt-get install nginx-light"}
	got, ok := ParseRow("    x_test.go:12: " + row("nginx is\n not installed", want.Remedy) + "\n")
	if !ok || got != want {
		t.Errorf("got %+v, %t", got, ok)
	}
	for _, line := range []string{
		"    x_test.go:12: not tried: anything", "        > [!exec:x] skip '" + row("x is not installed", "install it") + "'",
	} {
		if _, ok := ParseRow(line); ok {
			t.Errorf("%q was taken for a row", line)
		}
	}
}

// TestPlacesAreFew: a test that wants a place waits until one of those that have one ends; its subtests share its own.
func TestPlacesAreFew(t *testing.T) {
	dir := filepath.Dir(host.lock.Name())
	var taken []*os.File
	t.Run("holder", func(t *testing.T) {
		Place(t)
		t.Run("part", func(t *testing.T) { Place(t) })
		for range places() - 1 {
			f, err := takePlace(dir, places(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, f)
		}
		f, err := takePlace(dir, places(), time.Now())
		if err == nil || !strings.Contains(err.Error(), "hosttest.test (process ") {
			t.Errorf("got %v, %v; want the name and id of a process that has a place", f, err)
		}
	})
	f, err := takePlace(dir, places(), time.Now())
	if err != nil {
		t.Fatalf("the place of a test that has ended was not given back: %v", err)
	}
	for _, f := range append(taken, f) {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
