package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nextStep is what to do about what others may write.
const nextStep = " it once you know that nobody has changed it, or use a folder elsewhere"

// othersWrite says why others than root and its owner may write an open file, "" if they may not. A group that has the
// number of the file's owner is that user's own, as is usual where the umask is 002; those of root and of services have
// other members.
func othersWrite(f *os.File, st *unix.Stat_t) string {
	const firstOfPeople = 1000 // as login.defs has it
	switch {
	case st.Mode&0o002 != 0:
		return "may be written by other users: chmod go-w" + nextStep
	case st.Mode&0o020 == 0: // these bits bound what an access control list gives, too
		return ""
	case st.Gid != st.Uid || st.Uid < firstOfPeople:
		return fmt.Sprintf("may be written by other users, those of the group %d: chmod go-w%s", st.Gid, nextStep)
	}
	list := make([]byte, 1<<16) // the largest that there is
	n, err := unix.Getxattr(byDescriptor(f.Fd()), "system.posix_acl_access", list)
	switch {
	case errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
		return ""
	case err != nil:
		return fmt.Sprintf("may be written by its group, and maybe by others (%v): chmod go-w%s", err, nextStep)
	case namesWriter(list[:n], st.Uid):
		return "may be written by other users, whom its access control list names (getfacl): setfacl -b" + nextStep
	}
	return ""
}

// namesWriter reports whether an access control list lets anybody write whom it names, but for root and the owner.
func namesWriter(list []byte, owner uint32) bool {
	const head, entry = 4, 8
	const user, group, write = 0x02, 0x08, 0x02
	for at := head; at+entry <= len(list); at += entry {
		tag := binary.LittleEndian.Uint16(list[at:])
		may := binary.LittleEndian.Uint16(list[at+2:])
		id := binary.LittleEndian.Uint32(list[at+4:])
		if may&write != 0 && (tag == group || tag == user && id != 0 && id != owner) {
			return true
		}
	}
	return false
}

// notOurs is an error if there is a reason for one.
func notOurs(path, why string) error {
	if why == "" {
		return nil
	}
	return &NotOursError{path, why}
}

// Replaceable is an error if other users can replace what is in a folder. With the sticky bit, which /tmp and the
// volumes of Kubernetes have, they can replace only their own.
func Replaceable(folder string) error {
	dir, err := openPath(folder)
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it only names the folder
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil || st.Mode&unix.S_ISVTX != 0 {
		return err
	}
	return notOurs(folder, othersWrite(dir, &st))
}

// WriteProgram writes a file that is to be executed. Meanwhile this process starts no other one: that would inherit the
// open file until it executes its own program, and no kernel executes a file that is open for writing (ETXTBSY).
func WriteProgram(path string, text []byte) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, 0o755)
}

// SetKernel writes a value to a file that the kernel shows in one of its file systems. It makes no file.
func SetKernel(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
