package proc_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/proc"
)

func TestTreeNoticesChange(t *testing.T) {
	parent := shell(t)
	tree, err := proc.NewTree(parent.pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := tree.Unchanged(); err != nil {
		t.Error(err)
	}
	parent.do(t, "sleep 30 & echo $!")
	if err := tree.Unchanged(); err == nil || !strings.Contains(err.Error(), parent.said) {
		t.Errorf("%v; want the child %s in it", err, parent.said)
	}
	if tree, err = proc.NewTree(parent.pid); err != nil || len(tree.PIDs()) != 2 {
		t.Fatalf("%v, %v", tree, err)
	}
	parent.do(t, "kill $!; wait $! 2>/dev/null; echo gone")
	if err := tree.Unchanged(); err == nil {
		t.Error("the end of a child was not noticed")
	}
	if _, err := tree.CPU(); err == nil {
		t.Error("a process that has ended has CPU time")
	}
}

// TestTreeNoticesChildrenThatCameAndWent: the processes are the same before and after, and yet one lived in between.
func TestTreeNoticesChildrenThatCameAndWent(t *testing.T) {
	parent := shell(t)
	parent.do(t, "true; echo warm")
	tree, err := proc.NewTree(parent.pid)
	if err != nil {
		t.Fatal(err)
	}
	parent.do(t, "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; echo $i") // no child
	if err := tree.Unchanged(); err != nil {
		t.Error(err)
	}
	parent.do(t, "/bin/true; echo done")
	if err := tree.Unchanged(); err == nil || !strings.Contains(err.Error(), "have ended since") {
		t.Errorf("%v; want that a child has ended", err)
	}
}

func TestTreeOfSeveralRoots(t *testing.T) {
	a, b := shell(t), shell(t)
	a.do(t, "sleep 30 & echo $!")
	child, err := strconv.Atoi(a.said)
	if err != nil {
		t.Fatal(err)
	}
	tree, err := proc.NewTree(a.pid, child, b.pid)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tree.PIDs(), []int{a.pid, child, b.pid}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v, each once", got, want)
	}
	before, err := tree.CPU()
	if err != nil {
		t.Fatal(err)
	}
	b.do(t, "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $i")
	after, err := tree.CPU()
	own, e := proc.CPUOf(b.pid)
	if used := after - before; err != nil || e != nil || used < 5*time.Millisecond || used > 2*own { // the others idle
		t.Errorf("used %v of %v, %v, %v", used, own, err, e)
	}
	a.do(t, "kill $!; echo")
	if _, err := proc.NewTree(); err == nil {
		t.Error("a tree of nothing")
	}
	if _, err := proc.NewTree(a.pid, 1<<22+1); err == nil {
		t.Error("a tree of a process that cannot be")
	}
}

// speaker is a shell that does a line at a time.
type speaker struct {
	pid  int
	in   io.Writer
	out  *bufio.Reader
	said string
}

func shell(t *testing.T) *speaker {
	t.Helper()
	cmd := exec.Command("/bin/sh")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &speaker{pid: cmd.Process.Pid, in: in, out: bufio.NewReader(out)}
}

func (s *speaker) do(t *testing.T, line string) {
	t.Helper()
	_, err := fmt.Fprintln(s.in, line)
	if err == nil {
		s.said, err = s.out.ReadString('\n')
	}
	if err != nil {
		t.Fatal(err)
	}
	s.said = strings.TrimSpace(s.said)
}

// TestTalk: the pipes are the caller's, and no word is said that the caller does not say.
func TestTalk(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	born := proc.ID{}
	c, err := proc.Start(t.Context(), proc.Spec{
		Name: "sed", Path: "/bin/sh", Args: []string{"-c", "echo starts >&2; sed -u s/a/b/; echo last; exit 6"},
		Talk: true, LogFile: log,
		Born: func(id proc.ID) error { born = id; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if born != c.ID || born.PID == 0 || c.Ready != nil {
		t.Errorf("born %v, started %v, ready %s", born, c.ID, c.Ready)
	}
	lines := bufio.NewReader(c.Out)
	for _, word := range []string{"a", "cat"} {
		if _, err := fmt.Fprintln(c.In, word); err != nil {
			t.Fatal(err)
		}
		if got, err := lines.ReadString('\n'); err != nil || got != strings.Replace(word, "a", "b", 1)+"\n" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if err := c.In.Close(); err != nil {
		t.Error(err)
	}
	<-c.Exited()
	// What it said last can be read after its end.
	if got, err := io.ReadAll(lines); err != nil || string(got) != "last\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := c.Out.Close(); err != nil {
		t.Error(err)
	}
	if c.Status() != "exit status 6" || !strings.Contains(c.Tail(), "starts") {
		t.Errorf("%q, %q", c.Status(), c.Tail())
	}
}

// TestTalkNotBorn: an error of Born ends the child and closes the pipes.
func TestTalkNotBorn(t *testing.T) {
	before := descriptors(t)
	var id proc.ID
	_, err := proc.Start(t.Context(), proc.Spec{
		Name: "cat", Path: "cat", Talk: true,
		Born: func(i proc.ID) error { id = i; return syscall.ENOSPC },
	})
	if !errors.Is(err, syscall.ENOSPC) || alive(id) {
		t.Errorf("%v, alive %v", err, alive(id))
	}
	_, err = proc.Start(t.Context(), proc.Spec{Name: "none", Path: "/nowhere/none", Talk: true})
	if !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if after := descriptors(t); after > before+1 { // the poller's own
		t.Errorf("%d descriptors were open, and now %d", before, after)
	}
}

// descriptors counts the pipes that are open.
func descriptors(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range all {
		if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "pipe:") {
			n++
		}
	}
	return n
}
