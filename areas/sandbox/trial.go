package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/areas/sandbox/apparmor"
	"tare/internal/files"
	"tare/internal/proc"
)

// trialMark marks the folders of trials before a run. There is no journal yet to list them, so their names identify
// their owner: the process with its start time.
const trialMark = "trial-"

// trialRun names what a trial makes in the kernel, as a run's identifier would.
func trialRun() string { return fmt.Sprintf(trialRunForm, os.Getpid()) }

const trialRunForm = "trial%07d"

// isLeftTrial reports whether an AppArmor namespace is that of a trial whose process has ended.
func isLeftTrial(namespace string) bool {
	var pid int
	if _, err := fmt.Sscanf(namespace, apparmor.Namespace(trialRunForm), &pid); err != nil {
		return false // not of a trial
	}
	_, err := proc.StartTicks(pid)
	return err != nil
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

// trialFolder returns a name for a folder that only this process uses while it lives.
func trialFolder() (string, error) {
	pid := os.Getpid()
	ticks, err := proc.StartTicks(pid)
	if err != nil {
		return "", fmt.Errorf("name a folder for a trial: %w", err)
	}
	random := strings.TrimPrefix(filepath.Base(newFolder()), folderPrefix)
	return filepath.Join(os.TempDir(), fmt.Sprintf("%s%s%d-%d-%s", folderPrefix, trialMark, pid, ticks, random)), nil
}

// inTrialFolder does something in a folder for a trial, which it removes at the end.
func inTrialFolder(do func(dir string) error) (err error) {
	dir, err := trialFolder()
	if err != nil {
		return err
	}
	if err := files.MakeNew(dir); err != nil {
		return fmt.Errorf("make a folder for a trial: %w", err)
	}
	defer func() { err = errors.Join(err, removeFolder(dir)) }()
	return do(dir)
}

// sweep removes the trial folders of processes that have ended, which were killed. The next run calls it.
func sweep() error {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), folderPrefix+trialMark+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range left {
		var pid int
		var ticks uint64
		if _, err := fmt.Sscanf(filepath.Base(path), folderPrefix+trialMark+"%d-%d-", &pid, &ticks); err != nil {
			continue // not named by trialFolder
		}
		if now, err := proc.StartTicks(pid); err == nil && now == ticks {
			continue // still in use
		}
		folder, err := files.At(path)
		if err != nil {
			continue // another user's, whose next run removes it
		}
		errs = append(errs, endInside(path), removeFolder(path), folder.Close())
	}
	return errors.Join(errs...)
}
