package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// TrialCommand is the command under which a program must call Trial.
const TrialCommand = "doctor-trial"

// The trials that run in children: a process cannot undo what they do to it, or they need another kind of process.
const (
	trialNothing  = "nothing"
	trialUserNS   = "user-namespace"
	trialOrdinary = "ordinary-user"
)

// trialWithin bounds a child's life.
const trialWithin = 10 * time.Second

// nobody is the unprivileged user and group (nobody, nogroup).
const nobody = 65534

// An outcome is the result of a trial, as the child's line on standard output.
type outcome struct {
	OK    bool   `json:"ok"`
	Cause string `json:"cause,omitempty"` // why not
}

// Trial is the child's side: it carries out one trial in this process, which must do nothing else and then end, and
// writes the outcome.
func Trial(ctx context.Context, name string, w io.Writer) error {
	trials := map[string]func(context.Context) error{
		trialNothing:  func(context.Context) error { return nil },
		trialUserNS:   func(context.Context) error { return tryNamespaceRights() },
		trialOrdinary: func(ctx context.Context) error { return tryUserNamespace(ctx, "/proc/self/exe") },
	}
	do, ok := trials[name]
	if !ok {
		return fmt.Errorf("there is no trial %q; tare doctor starts these itself", name)
	}
	runtime.LockOSThread() // privileges belong to threads
	err := do(ctx)
	o := outcome{OK: err == nil}
	if err != nil {
		o.Cause = err.Error()
	}
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = w.Write(append(line, '\n'))
	return err
}

// runTrial runs one of the trials in a child. The error is either the trial's own, or that of starting the child.
func runTrial(ctx context.Context, self, name string, attr *syscall.SysProcAttr) error {
	ctx, cancel := context.WithTimeout(ctx, trialWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, TrialCommand, name)
	cmd.SysProcAttr = attr
	cmd.Env = []string{}
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var o outcome
	if jsonErr := json.Unmarshal(out, &o); jsonErr == nil && err == nil {
		if !o.OK {
			return errors.New(o.Cause)
		}
		return nil
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %.200s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err == nil {
		err = fmt.Errorf("the child said %.100q", out)
	}
	return err
}

// tryUserNamespace starts a child of self in its own user and UTS namespaces, which end with it.
func tryUserNamespace(ctx context.Context, self string) error {
	return runTrial(ctx, self, trialUserNS, &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: unix.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: unix.Getgid(), Size: 1}},
	})
}

// tryNamespaceRights uses a right that only the namespace's root has. Some systems let any user create a namespace and
// grant no rights in it.
func tryNamespaceRights() error {
	if uid := unix.Getuid(); uid != 0 {
		return fmt.Errorf("user %d in a user name space of its own, want 0", uid)
	}
	if err := unix.Sethostname([]byte("tare-doctor")); err != nil {
		return fmt.Errorf("root of a user name space has no rights in it: %w", err)
	}
	return nil
}
