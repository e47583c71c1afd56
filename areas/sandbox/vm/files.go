package vm

import (
	"context"
	"fmt"
	"os"
)

// GuestSelf is the path of this program in a guest.
const GuestSelf = "/bin/tare"

// NewGuest returns the initial file system of a guest: this program, whose path is self, the working folder, what
// programs expect to find, and the named programs.
func NewGuest(ctx context.Context, self string, programs []string) (*Initrd, error) {
	r := NewInitrd()
	path, err := r.Program(ctx, self)
	if err != nil {
		return nil, err
	}
	if err := r.PutSelf(GuestSelf, path); err != nil {
		return nil, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{dir, "/dev", "/proc", "/sys", "/tmp", "/run", "/root"} {
		r.Folder(folder)
	}
	for at, text := range map[string]string{
		"/etc/passwd":        "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"/etc/group":         "root:x:0:\nnogroup:x:65534:\n",
		"/etc/hosts":         "127.0.0.1 localhost\n",
		"/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
	} {
		r.Write(at, []byte(text), 0o644)
	}
	for _, name := range programs {
		if _, err := r.Program(ctx, name); err != nil {
			return nil, fmt.Errorf("the program %q: %w", name, err)
		}
	}
	return r, nil
}
