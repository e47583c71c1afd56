// Package apparmor confines processes by AppArmor profiles made of policies or by the user's. No profile of the host is
// replaced: policies get names that begin with the run's, and the user's profiles a policy namespace of the run.
package apparmor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Where the kernel offers AppArmor (Documentation/admin-guide/LSM/apparmor.rst).
const (
	securityFS = "/sys/kernel/security"
	kernelDir  = securityFS + "/apparmor"
	moduleDir  = "/sys/module/apparmor"
)

// Enter makes a loaded profile confine the calling thread from its next execve on. The thread must be locked and
// unconfined; it may have no_new_privs, since a thread that nothing confines may give up rights.
func Enter(l Label) error { return enter(l, "exec", "exec") }

// Change makes a loaded profile confine the calling thread at once. As with Enter, the thread must be locked and
// unconfined.
func Change(l Label) error { return enter(l, "current", "changeprofile") }

// enter writes a command to an attribute of the calling thread.
func enter(l Label, attribute, command string) error {
	name := l.Namespace
	if name == "" {
		name, _, _ = strings.Cut(l.Profile, nameMark)
	}
	if err := checkNamespace(name); err != nil {
		return err
	}
	l.Mode = ""
	f, err := openAttribute("thread-self", attribute, os.O_WRONLY)
	if err != nil {
		return fmt.Errorf("confine this thread by AppArmor's %s: %w", l, err)
	}
	defer f.Close() //nolint:errcheck // the kernel acts on the write
	if _, err := f.WriteString(command + " " + l.String()); err != nil {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = errors.New("the profile is not loaded: load it first, and let nothing remove it meanwhile")
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("%w: the thread is confined already, by a profile that does not allow the change: run tare "+
				"unconfined", err)
		}
		return fmt.Errorf("confine this thread by AppArmor's %s: %w", l, err)
	}
	return nil
}

// openAttribute opens an AppArmor attribute of a process. Kernels before 5.8 have one set of attributes for all
// security modules.
func openAttribute(process, name string, flags int) (*os.File, error) {
	f, err := os.OpenFile("/proc/"+process+"/attr/apparmor/"+name, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = os.OpenFile("/proc/"+process+"/attr/"+name, flags, 0)
	}
	return f, err
}

// A Label is what confines a process, as the kernel says it.
type Label struct {
	Namespace string `json:"namespace,omitempty"` // empty: that of the reader
	Profile   string `json:"profile"`             // "unconfined" for a process without a profile
	Mode      string `json:"mode,omitempty"`      // "enforce" or "complain"; empty if nothing confines the process
}

// String returns the label as in /proc/PID/attr/apparmor/current.
func (l Label) String() string {
	text := l.Profile
	if l.Namespace != "" {
		text = ":" + l.Namespace + "://" + text
	}
	if l.Mode != "" {
		text += " (" + l.Mode + ")"
	}
	return text
}

// Current returns the label of a process. A process must not read its own: it sees no namespace from inside.
func Current(pid int) (Label, error) {
	f, err := openAttribute(fmt.Sprint(pid), "current", os.O_RDONLY)
	if err != nil {
		return Label{}, fmt.Errorf("read the AppArmor label of process %d: %w", pid, err)
	}
	defer f.Close()             //nolint:errcheck // it is only read
	text := make([]byte, 1<<14) // the kernel allows a page
	n, err := f.Read(text)
	if err != nil {
		return Label{}, fmt.Errorf("read the AppArmor label of process %d: %w", pid, err)
	}
	return parseLabel(string(text[:n])), nil
}

// parseLabel reads ":namespace://profile (mode)", of which only the profile is always there.
func parseLabel(text string) (l Label) {
	l.Profile = strings.TrimRight(text, "\n\x00")
	if i := strings.LastIndex(l.Profile, " ("); i >= 0 && strings.HasSuffix(l.Profile, ")") {
		l.Profile, l.Mode = l.Profile[:i], l.Profile[i+2:len(l.Profile)-1]
	}
	if rest, ok := strings.CutPrefix(l.Profile, ":"); ok {
		if ns, profile, ok := strings.Cut(rest, ":"); ok {
			l.Namespace, l.Profile = ns, strings.TrimPrefix(profile, "//")
		}
	}
	return l
}
