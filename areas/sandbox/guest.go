package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
)

// guestFiles returns the initial file system of a guest: this program, the programs that the operations start, and the
// files that treatments name.
func (s *Spec) guestFiles(ctx context.Context, env area.Env) (*vm.Initrd, error) {
	r, err := vm.NewGuest(ctx, env.Self, s.guestPrograms())
	if err != nil {
		return nil, err
	}
	for _, d := range s.daemons() {
		files, err := workload.Opens(d)
		if err != nil {
			return nil, err
		}
		for _, path := range files {
			if err := r.Put(path, path); err != nil {
				return nil, err
			}
		}
	}
	for _, t := range env.Treatments {
		p, err := s.plan(t)
		if err != nil {
			return nil, err
		}
		if p.stack.has(enforcerAppArmor) {
			if err := addAppArmor(ctx, r); err != nil {
				return nil, err
			}
		}
		if p.stack.has(enforcerSELinux) {
			if _, err := r.Program(ctx, "secilc"); err != nil {
				return nil, area.WithHint(err, "apt-get install --no-install-recommends secilc, or leave selinux out")
			}
		}
		if err := p.policy.putAppFile(r); err != nil {
			return nil, err
		}
		for _, path := range p.files(t) {
			if path, err = filepath.Abs(path); err != nil {
				return nil, err
			}
			if err := r.Put(path, path); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// putAppFile adds the user's AppArmor profile, with the text of the files that it includes.
func (p Policy) putAppFile(r *vm.Initrd) error {
	if p.AppFile == nil {
		return nil
	}
	path, err := filepath.Abs(p.AppFile.path)
	if err == nil {
		r.Write(path, []byte(p.AppFile.file.Text), 0o600)
	}
	return err
}

// files are the files that a treatment names, and that are taken along as they are.
func (p plan) files(t design.Treatment) (out []string) {
	if p.policy.Profile != nil {
		out = append(out, t.Levels[factorProfile])
	}
	if p.policy.Own != nil {
		out = append(out, t.Levels[factorRules])
	}
	return out
}

// addAppArmor adds the compiler of profiles, with the files that it includes.
func addAppArmor(ctx context.Context, r *vm.Initrd) error {
	if _, err := r.Program(ctx, "apparmor_parser"); err != nil {
		return area.WithHint(err, "apt-get install --no-install-recommends apparmor, or leave apparmor out")
	}
	for _, dir := range []string{
		"/etc/apparmor", "/etc/apparmor.d/abi", "/etc/apparmor.d/tunables", "/usr/share/apparmor-features",
	} {
		if err := r.Tree(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // not all distributions have all
			return err
		}
	}
	return nil
}

// guestPrograms are the programs that the operations start.
func (s *Spec) guestPrograms() []string {
	var out []string
	for _, name := range slices.Concat(s.Workloads, s.daemons(), s.programs()) {
		out = append(out, workload.Starts(name)...)
	}
	for _, c := range s.Commands {
		out = append(out, c.Run[0])
		if len(c.Prepare) > 0 {
			out = append(out, c.Prepare[0])
		}
	}
	return out
}
