package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// ErrNoCgroup means that tare cannot create a control group with a CPU limit on this host; the text says why. Use
// Throttle instead.
var ErrNoCgroup = errors.New("no control group with a CPU limit")

// cgroupPrefix marks the groups that tare may remove.
const cgroupPrefix = "tare-"

// removeWithin bounds the wait for a control group to empty.
const removeWithin = 5 * time.Second

// Quota limits CPU time as the CFS bandwidth controller does: Share × Period of CPU time in every Period. Unused time
// is lost.
type Quota struct {
	Share  float64       `json:"share"`            // of one CPU: 0.1 is Kubernetes' 100m
	Period time.Duration `json:"period,omitempty"` // 1 ms to 1 s; 0: 100 ms
}

const defaultPeriod = 100 * time.Millisecond

func (q Quota) withDefaults() (Quota, error) {
	if q.Period == 0 {
		q.Period = defaultPeriod
	}
	switch {
	case q.Period < time.Millisecond || q.Period > time.Second:
		return q, fmt.Errorf("CPU period %v: the kernel takes 1 ms to 1 s", q.Period)
	case !(q.Share > 0) || q.perPeriod() < time.Millisecond:
		return q, fmt.Errorf("CPU share %v: the kernel takes at least 1 ms in each period of %v, so a share of at least %v",
			q.Share, q.Period, time.Millisecond.Seconds()/q.Period.Seconds())
	}
	return q, nil
}

// perPeriod returns the CPU time granted in each period, in whole microseconds as the kernel counts.
func (q Quota) perPeriod() time.Duration {
	return time.Duration(q.Share * float64(q.Period)).Round(time.Microsecond)
}

// A Cgroup is a control group with a CPU quota that tare created.
type Cgroup struct {
	path string
	home string // this process's own group
	v2   bool
}

// CgroupName makes the name of a group from the run's and the subject's: "tare-<run>-<subject>". It replaces every
// character that is not allowed in a file name, or is unreadable, by '-'.
func CgroupName(run, subject string) string {
	clean := func(r rune) rune {
		if isNameRune(r) {
			return r
		}
		return '-'
	}
	return cgroupPrefix + strings.Map(clean, run) + "-" + strings.Map(clean, subject)
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.'
}

// PlanCgroup returns the path that NewCgroup(name, …) will create, so that it can be journaled first. It changes
// nothing. The error wraps ErrNoCgroup when this host allows no such group.
func PlanCgroup(name string) (string, error) {
	h, err := findHierarchy(name)
	if err != nil {
		return "", err
	}
	return filepath.Join(h.dir, name), nil
}

func findHierarchy(name string) (hierarchy, error) {
	if !strings.HasPrefix(name, cgroupPrefix) || len(name) > 128 ||
		strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }) {
		return hierarchy{}, fmt.Errorf("control group name %q: want %s<run>-<subject>, see CgroupName", name, cgroupPrefix)
	}
	return planHierarchy("/")
}

// NewCgroup creates a group with the quota, or fails where this host does not allow it. An error that wraps ErrNoCgroup
// leaves no group behind. An existing empty group of this name is reused.
func NewCgroup(name string, q Quota) (*Cgroup, error) {
	q, err := q.withDefaults()
	if err != nil {
		return nil, err
	}
	h, err := findHierarchy(name)
	if err != nil {
		return nil, err
	}
	c := &Cgroup{path: filepath.Join(h.dir, name), home: h.home, v2: h.v2}
	if err := h.delegate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	if err := os.Mkdir(c.path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%w: %w", ErrNoCgroup, err)
	}
	if err := c.limit(q); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoCgroup, err), c.Remove())
	}
	return c, nil
}

// limit writes the quota; formats from the kernel's cgroup-v2.rst (cpu.max) and sched-bwc.rst (cfs_*).
func (c *Cgroup) limit(q Quota) error {
	quota, period := q.perPeriod().Microseconds(), q.Period.Microseconds()
	if c.v2 {
		return c.write("cpu.max", fmt.Sprintf("%d %d", quota, period))
	}
	if err := c.write("cpu.cfs_period_us", strconv.FormatInt(period, 10)); err != nil {
		return err
	}
	return c.write("cpu.cfs_quota_us", strconv.FormatInt(quota, 10))
}

// SetQuota replaces the group's quota.
func (c *Cgroup) SetQuota(q Quota) error {
	q, err := q.withDefaults()
	if err != nil {
		return err
	}
	if err := c.limit(q); err != nil {
		return fmt.Errorf("limit the CPU of %s: %w", filepath.Base(c.path), err)
	}
	return nil
}

// Path returns the group's directory.
func (c *Cgroup) Path() string { return c.path }

// V2 reports whether the group is in the unified hierarchy.
func (c *Cgroup) V2() bool { return c.v2 }

// Add moves a process with all its threads into the group.
func (c *Cgroup) Add(pid int) error {
	if err := c.write("cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("limit CPU of process %d: %w", pid, err)
	}
	return nil
}

// Release moves a process with all its threads out of the group, into this process's own. One that has ended is no
// error.
func (c *Cgroup) Release(pid int) error {
	err := files.SetKernel(filepath.Join(c.home, "cgroup.procs"), strconv.Itoa(pid))
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end the CPU limit of process %d: %w", pid, err)
	}
	return nil
}

func (c *Cgroup) write(file, value string) error {
	return files.SetKernel(filepath.Join(c.path, file), value)
}

// Remove removes the group. It kills nothing: it waits, up to 5 s, for the processes in it to end.
func (c *Cgroup) Remove() error { return RemoveCgroup(c.path) }

// RemoveCgroup removes the group at path, as Cgroup.Remove does, in a process that did not create it. It succeeds if
// the group does not exist, and refuses a path that tare cannot have created.
func RemoveCgroup(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !strings.HasPrefix(filepath.Base(path), cgroupPrefix) {
		return fmt.Errorf("remove control group: %q is not one of tare's", path)
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := onCgroupFS(path); err != nil {
		return fmt.Errorf("remove control group: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	for {
		err := unix.Rmdir(path)
		switch {
		case err == nil || errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("remove control group %s: %w", path, err)
		}
		if !pause(ctx, 10*time.Millisecond) {
			return fmt.Errorf("remove control group %s: %w; end the processes in its cgroup.procs first", path, err)
		}
	}
}

// pause waits for d and reports whether ctx still lives then.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func onCgroupFS(path string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return err
	}
	if s.Type != unix.CGROUP_SUPER_MAGIC && s.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%s is not in a control group file system", path)
	}
	return nil
}
