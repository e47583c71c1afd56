package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"tare/internal/limit"
	"tare/internal/proc"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/rigs/limits"
)

// A named is what tare said of the limit and the failure of one server.
type named struct {
	limits.Spec

	said          report.Capacity
	limit         limit.Kind
	certainty     signature.Certainty
	failure       signature.Class
	right, failed mark // of the limit, and of the failure
	seconds       float64
	excluded      int
}

// limitsOf has tare search the capacity of servers that have a limit and another failure, and prints both answers
// beside the truth. With user, tare runs as that user and cannot look into the servers.
func limitsOf(ctx context.Context, o options, user uint32, stdout, stderr io.Writer) error {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	dir, remove, err := o.folder()
	if err != nil {
		return err
	}
	defer remove()
	var all []*named
	var failed []error
	for _, s := range limits.All() {
		for i := range o.n {
			if !only.MatchString(s.Name) || ctx.Err() != nil {
				continue
			}
			n := &named{Spec: s}
			to := filepath.Join(dir, fmt.Sprintf("%s-%d", strings.ReplaceAll(s.Name, " ", "-"), i))
			search := n.search
			if kept, _ := filepath.Glob(filepath.Join(to, "results", "*")); len(kept) == 1 {
				search = n.again
			}
			if err := search(ctx, o.tare, to, user); err != nil {
				failed = append(failed, fmt.Errorf("%s: %w", s.Name, err))
				continue
			}
			all = append(all, n)
			_, _ = fmt.Fprintln(stderr, n.row())
		}
	}
	return errors.Join(errors.Join(failed...), writeLimits(stdout, all))
}

// search starts the server in a process of its own, in a control group if it has a quota, and has tare ask about it.
func (n *named) search(ctx context.Context, tare, dir string, user uint32) (err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	spec, err := json.Marshal(n.Spec)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, "-limit", string(spec))
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer func() {
		_ = c.Process.Kill() // it has no other end
		_ = c.Wait()
	}()
	if n.Quota > 0 {
		group, err := proc.NewCgroup(fmt.Sprintf("tare-calibrate-%d", os.Getpid()), proc.Quota{Share: n.Quota})
		if err != nil {
			return err
		}
		defer func() {
			_ = c.Process.Kill()
			err = errors.Join(err, group.Remove())
		}()
		if err := group.Add(c.Process.Pid); err != nil {
			return err
		}
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	return n.ask(ctx, tare, "http://"+strings.TrimSpace(address), dir, user)
}

// ask has tare search.
func (n *named) ask(ctx context.Context, tare, url, dir string, user uint32) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tare, err := filepath.Abs(tare)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "report.json")
	c := exec.CommandContext(ctx, tare, "capacity", url, "--max-rate", "2000/s", "-o",
		"json="+file, "--results", filepath.Join(dir, "results"))
	c.Dir = dir
	if user > 0 {
		if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil { //nolint:gosec // another user writes here
			return err
		}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		c.Env = append(os.Environ(), "HOME="+dir)
	}
	return n.read(c, file)
}

// again has tare judge the record of an earlier search.
func (n *named) again(ctx context.Context, tare, dir string, _ uint32) error {
	kept, err := filepath.Glob(filepath.Join(dir, "results", "*"))
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "report.json")
	return n.read(exec.CommandContext(ctx, tare, "report", kept[0], "-o", "json="+file), file)
}

// read runs a tare that writes a report into a file, and judges what it says.
func (n *named) read(c *exec.Cmd, file string) error {
	said, failed := c.CombinedOutput() // the code says how the search ended, and so does the report
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w; %w: %.500s", err, failed, said)
	}
	var r report.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	if len(r.Capacity) != 1 {
		return errors.New("the report has no capacity")
	}
	n.said, n.seconds = r.Capacity[0], r.Seconds
	n.judge()
	return nil
}

// judge compares both answers with the truth.
func (n *named) judge() {
	n.right, n.failed, n.limit, n.failure = unknown, unknown, limit.Unknown, signature.Unknown
	if l := n.said.Limit; l != nil {
		n.limit, n.certainty, n.excluded = l.Kind, l.Certainty, len(l.Excluded)
	}
	if f := n.said.Failure; f != nil {
		n.failure = f.Class
	}
	if n.limit != limit.Unknown {
		n.right = wrong
	}
	if slices.Contains(n.Truth.Limits, n.limit) {
		n.right = right
	}
	if n.failure != signature.Unknown && n.failure != signature.Client {
		n.failed = wrong
	}
	if slices.Contains(n.Truth.Failures, n.failure) {
		n.failed = right
	}
}

// row is one line of the table.
func (n *named) row() string {
	rate := "–"
	if n.said.Rate != nil {
		rate = fmt.Sprintf("%.4g", *n.said.Rate)
	}
	return fmt.Sprintf("| %s | %.0f | %s | %s | %s (%s) | %s | %s | %s | %.0f | %d |", n.Name, n.Truth.Rate, rate,
		n.Truth.Limits[0], n.limit, cmp.Or(string(n.certainty), "–"), n.right, n.failure, n.failed, n.seconds, n.excluded)
}

// writeLimits prints the answers, and how many are right.
func writeLimits(w io.Writer, all []*named) error {
	var b strings.Builder
	b.WriteString("| server | rate | answer | limit | answer | mark | failure | mark | seconds | excluded |\n" +
		"|---|---|---|---|---|---|---|---|---|---|\n")
	limitsBy, failures := map[mark]int{}, map[mark]int{}
	seen, namedSeen := 0, 0
	for _, n := range all {
		b.WriteString(n.row() + "\n")
		limitsBy[n.right]++
		failures[n.failed]++
		if n.Truth.Seen {
			seen++
			if n.right == right {
				namedSeen++
			}
		}
	}
	fmt.Fprintf(&b, "\nlimit: %d right, %d unknown, %d wrong; of %d that can be seen %d are named\nfailure: %d right, %d unknown, %d wrong\n",
		limitsBy[right], limitsBy[unknown], limitsBy[wrong], seen, namedSeen, failures[right], failures[unknown], failures[wrong])
	_, err := io.WriteString(w, b.String())
	return err
}
