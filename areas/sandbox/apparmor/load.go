package apparmor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tare/areas/sandbox/policy"
	"tare/internal/files"
)

// A Loaded profile can be entered.
type Loaded struct {
	Label    Label // what Current returns for a process under it
	Compiled []byte
	Warnings []string
}

// Changed compiles a profile of another policy under the name of this one. It loads nothing.
func (l Loaded) Changed(ctx context.Context, p policy.Policy) (Loaded, error) {
	text, _ := Profile(l.Label.Profile, p)
	var err error
	l.Compiled, l.Warnings, err = Compile(ctx, Source{l.Label.Profile, text}, Enforce)
	return l, err
}

// Replace loads the profile in the place of that with the same name, also for the processes that it confines.
func (l Loaded) Replace() error {
	if l.Label.Namespace != "" {
		return loadInto(l.Label.Namespace, l.Compiled)
	}
	if err := files.SetKernel(replaceFile, string(l.Compiled)); err != nil {
		return fmt.Errorf("replace the AppArmor profile %s: %w", l.Label.Profile, refused(err))
	}
	return nil
}

// copyDigits are the digits at the end of the name of a copy.
const copyDigits = 5

// LoadCopy loads a copy of the profile beside it, which confines nothing; i is its number. A copy of profiles in a
// namespace is in a namespace of its own inside of that.
func (l Loaded) LoadCopy(i int) error {
	if l.Label.Namespace != "" {
		return loadInto(l.copyNamespace(i), l.Compiled)
	}
	name, err := l.copyName(i)
	if err != nil {
		return err
	}
	compiled := bytes.ReplaceAll(l.Compiled, []byte(l.Label.Profile), []byte(name))
	if err := files.SetKernel(replaceFile, string(compiled)); err != nil {
		return fmt.Errorf("load the AppArmor profile %s: %w", name, refused(err))
	}
	return nil
}

// RemoveCopy removes a copy.
func (l Loaded) RemoveCopy(i int) error {
	if l.Label.Namespace != "" {
		return os.Remove(filepath.Join(namespacesDir, l.copyNamespace(i)))
	}
	name, err := l.copyName(i)
	if err != nil {
		return err
	}
	return files.SetKernel(removeFile, name)
}

// copyNamespace is the path of a copy's namespace.
func (l Loaded) copyNamespace(i int) string {
	return filepath.Join(l.Label.Namespace, "namespaces", fmt.Sprintf("copy%0*d", copyDigits, i))
}

// copyName returns the name of a copy, which is as long as the profile's: the compiled policy is aligned.
func (l Loaded) copyName(i int) (string, error) {
	name := l.Label.Profile
	_, own, _ := strings.Cut(name, nameMark)
	if len(own) <= copyDigits {
		return "", fmt.Errorf("copy the AppArmor profile %s: its own part is too short for a number", name)
	}
	return fmt.Sprintf("%s%0*d", name[:len(name)-copyDigits], copyDigits, i), nil
}

// LoadPolicy compiles the profile of a policy and loads it beside the host's profiles, under a name that begins with
// the namespace's. A profile in a namespace would not do: it allows tracing and signalling all processes outside of it,
// whatever its rules are. The profile has no attachment, so no program of the host comes under it.
func LoadPolicy(ctx context.Context, namespace, name string, p policy.Policy) (Loaded, error) {
	if err := checkNamespace(namespace); err != nil {
		return Loaded{}, err
	}
	name = namespace + nameMark + name
	text, _ := Profile(name, p)
	profiles, warnings, err := Compile(ctx, Source{name, text}, Enforce)
	if err != nil {
		return Loaded{}, err
	}
	if err := files.SetKernel(replaceFile, string(profiles)); err != nil {
		return Loaded{}, fmt.Errorf("load the AppArmor profile %s: %w", name, refused(err))
	}
	return Loaded{Label{Profile: name, Mode: string(Enforce)}, profiles, warnings}, nil
}

// LoadFile compiles a file of profiles and loads all of them into the namespace, which it makes if it does not exist.
// So they neither replace profiles of the host nor attach to its programs. Their rules about other processes (ptrace,
// signal, unix, dbus) act upon processes of the same namespace only: the kernel allows what concerns processes outside.
func LoadFile(ctx context.Context, namespace string, f *File, profile string, m Mode) (Loaded, error) {
	if err := checkNamespace(namespace); err != nil {
		return Loaded{}, err
	}
	s := f.Source()
	if m == Complain {
		s = f.Observed()
	}
	profiles, warnings, err := Compile(ctx, s, m)
	if err != nil {
		return Loaded{}, err
	}
	if err := loadInto(namespace, profiles); err != nil {
		return Loaded{}, err
	}
	return Loaded{Label{namespace, profile, string(m)}, profiles, warnings}, nil
}
