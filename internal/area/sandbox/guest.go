package sandbox

import (
	"context"
	"path/filepath"
	"slices"

	"tare/internal/area"
	"tare/internal/area/sandbox/workload"
	"tare/internal/vm"
)

// guestFiles returns the initial file system of a guest: this program, the programs that the operations start, and the
// files that treatments name.
func (s *Spec) guestFiles(ctx context.Context, env area.Env) (*vm.Initrd, error) {
	r, err := vm.NewGuest(ctx, env.Self, s.guestPrograms())
	if err != nil {
		return nil, err
	}
	for _, t := range env.Treatments {
		path := t.Levels[factorProfile]
		if path == "" {
			continue
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		if err := r.Put(path, path); err != nil {
			return nil, err
		}
	}
	return r, nil
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
