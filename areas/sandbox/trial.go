package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tare/areas/sandbox/apparmor"
	"tare/internal/files"
	"tare/internal/proc"
)

// trialMark marks the folders of trials before a run. There is no journal yet to list them, so they have names of their
// own, and are locked while they are in use.
const trialMark = "trial-"

// trialRun names what a trial makes in the kernel, as a run's identifier would: by this process and its PID namespace,
// since AppArmor's policy outlives the one and is shared by several of the other.
func trialRun() string {
	pid := os.Getpid()
	ticks, _ := proc.StartTicks(pid) // without /proc there is no PID namespace either
	return fmt.Sprintf(trialRunForm, pidNamespace(), pid, ticks)
}

const trialRunForm = "trial%d-%d-%d"

// pidNamespace is the number of the namespace in which this process's numbers of processes hold; 0: not known.
func pidNamespace() (number uint64) {
	link, _ := files.Leads("/proc/self/ns/pid")
	_, _ = fmt.Sscanf(link, "pid:[%d]", &number)
	return number
}

// isLeftTrial reports whether an AppArmor namespace is that of a trial whose process has ended. Processes of other PID
// namespaces cannot be seen; a reboot removes what they left.
func isLeftTrial(namespace string) bool {
	var in, ticks uint64
	var pid int
	_, err := fmt.Sscanf(namespace, apparmor.Namespace(trialRunForm), &in, &pid, &ticks)
	if err != nil || in != pidNamespace() {
		return false
	}
	now, err := proc.StartTicks(pid)
	return err != nil || now != ticks
}

// sweepAppArmor removes what killed runs left of their trials in the kernel.
func sweepAppArmor() error {
	all, err := apparmor.Namespaces()
	if err != nil {
		return err
	}
	var errs []error
	for _, namespace := range all {
		if isLeftTrial(namespace) {
			errs = append(errs, apparmor.Remove(namespace))
		}
	}
	return errors.Join(errs...)
}

// trialFolder makes a folder for a trial. It is locked until it is closed, and no longer than this process lives.
func trialFolder() (folder *files.Folder, err error) {
	const attempts = 10
	for range attempts {
		random := strings.TrimPrefix(filepath.Base(newFolder()), folderPrefix)
		folder, err = makeLocked(filepath.Join(os.TempDir(), folderPrefix+trialMark+random))
		if !errors.Is(err, fs.ErrNotExist) {
			return folder, err
		}
	}
	return nil, err
}

// makeLocked makes a folder and locks it. The error is fs.ErrNotExist where a sweep of another process was in between.
func makeLocked(path string) (*files.Folder, error) {
	if err := files.MakeNew(path); err != nil {
		return nil, err
	}
	folder, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	locked, err := folder.Lock()
	if err == nil && !locked {
		err = fs.ErrNotExist // at any moment
	}
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// inTrialFolder does something in a folder for a trial, which it removes at the end.
func inTrialFolder(do func(dir string) error) (err error) {
	folder, err := trialFolder()
	if err != nil {
		return fmt.Errorf("make a folder for a trial: %w", err)
	}
	defer func() { err = errors.Join(err, removeFolder(folder.Path()), folder.Close()) }()
	return do(folder.Path())
}

// sweep removes the trial folders that nobody has locked: those of killed runs. The next run calls it.
func sweep() error {
	digits := strings.Repeat("[0-9a-f]", 2*folderBytes)
	left, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+trialMark+digits))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range left {
		folder, err := files.At(path)
		if err != nil {
			continue // another user's, whose next run removes it
		}
		unused, err := folder.Lock()
		if unused {
			err = errors.Join(endInside(path), removeFolder(path))
		}
		errs = append(errs, err, folder.Close())
	}
	return errors.Join(errs...)
}
