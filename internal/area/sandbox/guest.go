package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"tare/internal/area"
	"tare/internal/area/sandbox/workload"
	"tare/internal/vm"
)

// guestSelf is this program in a guest.
const guestSelf = "/bin/tare"

// guestFiles returns the initial file system of a guest: this program, the programs that the workloads start, and the
// files that treatments name.
func (s *Spec) guestFiles(ctx context.Context, env area.Env) (*vm.Initrd, error) {
	r := vm.NewInitrd()
	self, err := r.Program(ctx, env.Self)
	if err != nil {
		return nil, err
	}
	if err := r.Put(guestSelf, self); err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{dir, "/dev", "/proc", "/sys", "/tmp", "/run", "/root"} {
		r.Folder(folder)
	}
	for path, text := range guestTexts() {
		r.Write(path, []byte(text), 0o644)
	}
	for _, name := range s.guestPrograms() {
		if _, err := r.Program(ctx, name); err != nil {
			return nil, fmt.Errorf("the program %q: %w", name, err)
		}
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

// guestTexts are files that programs expect.
func guestTexts() map[string]string {
	return map[string]string{
		"/etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"/etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	}
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
