package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
)

const (
	buildWithin = 15 * time.Minute // for a slow network, and never for ever
	lockEvery   = 200 * time.Millisecond
	// killedWithin bounds the wait for the output of a build that was killed.
	killedWithin = 5 * time.Second
)

// A recipe makes one folder of the cache.
type recipe struct {
	kind Kind
	name string // of the folder: "xacml-att-" and a hash of everything that it is made from
	// lock names what must not be built twice at a time, because builds share more than their folder.
	lock string
	// make fills the folder dir.
	make func(ctx context.Context, dir string) error
}

// built returns the folder of r, and makes it if it is not there. A folder appears whole or not at all; of several processes, one builds and
// the others wait for it.
func (h Host) built(ctx context.Context, r recipe) (string, error) {
	cache, err := h.cacheOf(r.kind)
	if err != nil {
		return "", err
	}
	final := filepath.Join(cache, r.name)
	if ok, err := exists(final); ok || err != nil {
		return final, err
	}
	ctx, cancel := context.WithTimeout(ctx, buildWithin)
	defer cancel()
	unlock, err := h.acquire(ctx, filepath.Join(cache, r.lock+".lock"))
	if err != nil {
		return "", fmt.Errorf("build %s: %w", r.name, err)
	}
	defer unlock()
	if ok, err := exists(final); ok || err != nil {
		return final, err
	}
	return final, r.build(ctx, cache, final)
}

// cacheOf is the cache folder, made if need be. What is run from it must be what we put there: a folder that others may write to will not do.
func (h Host) cacheOf(k Kind) (string, error) {
	cache, err := h.CacheFolder()
	if err == nil {
		err = os.MkdirAll(cache, 0o700)
	}
	var s unix.Stat_t
	if err == nil {
		err = unix.Stat(cache, &s)
	}
	if err == nil && (s.Mode&0o022 != 0 || (int(s.Uid) != os.Geteuid() && s.Uid != 0)) {
		err = fmt.Errorf("others may write to %s", cache)
	}
	if err != nil {
		return "", &Missing{Kind: k, Reason: "no folder for what is built: " + err.Error(), Next: "set " + CacheVariable + " to a folder of your own"}
	}
	return cache, nil
}

// build works beside the final folder, so that the rename at the end is atomic. The lock must be held.
func (r recipe) build(ctx context.Context, cache, final string) (err error) {
	left, err := filepath.Glob(filepath.Join(cache, r.name+".*.tmp"))
	if err != nil {
		return err
	}
	for _, dir := range left { // of a build that was killed
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(cache, r.name+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := r.make(ctx, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, final)
}

// acquire takes a lock that ends with this process, however it ends.
func (h Host) acquire(ctx context.Context, file string) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks; there is nothing to lose in the file
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
		}
		if !told {
			h.Log.Info("another process is building a decision point: waiting for it")
			told = true
		}
		if err := (clock.System{}).Sleep(ctx, lockEvery); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// A step is one command of a build.
type step struct {
	path string
	args []string
	dir  string
	env  []string // besides the process's own
}

// run runs the command and returns all that it said. Its whole process group ends with ctx; the command itself, if we are killed: a build that
// went on would be beside the next one, without the lock.
func (s step) run(ctx context.Context) (string, error) {
	runtime.LockOSThread() // Pdeathsig comes when the thread that forked ends
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, s.path, s.args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.dir, append(os.Environ(), s.env...), &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = killedWithin
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), err
}

// tail is the end of what a command said, for an error.
func tail(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

// hashOf is a short hash of files, their names included, and of further words.
func hashOf(files fs.FS, paths []string, words ...string) (string, error) {
	var all bytes.Buffer
	for _, path := range paths {
		b, err := fs.ReadFile(files, path)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&all, "%s %d\n%s\n", path, len(b), b)
	}
	fmt.Fprintf(&all, "%q", words)
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])[:12], nil
}
