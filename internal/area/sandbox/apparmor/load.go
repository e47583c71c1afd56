package apparmor

import (
	"context"
	"fmt"

	"tare/internal/area/sandbox/policy"
)

// A Loaded profile can be entered.
type Loaded struct {
	Label    Label // what Current returns for a process under it
	Bytes    int   // of the compiled policy: the kernel says nowhere how much memory it takes
	Warnings []string
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
	if err := tell(replaceFile, profiles); err != nil {
		return Loaded{}, fmt.Errorf("load the AppArmor profile %s: %w", name, refused(err))
	}
	return Loaded{Label{Profile: name, Mode: string(Enforce)}, len(profiles), warnings}, nil
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
	return Loaded{Label{namespace, profile, string(m)}, len(profiles), warnings}, nil
}
