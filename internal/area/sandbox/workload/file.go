package workload

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// atCWD is AT_FDCWD as an argument of a system call; paths are absolute, so that it does not matter.
const atCWD = ^uintptr(99)

// named is a path that system calls can be given without allocation.
type named struct {
	plain

	op   string
	path *byte
}

func newNamed(op, path string) (named, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return named{}, fmt.Errorf("%s: path %q: %w", op, path, err)
	}
	return named{op: op, path: p}, nil
}

// openAt opens the path and closes it again.
func (f *named) openAt(flags int) error {
	fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, atCWD, uintptr(unsafe.Pointer(f.path)), uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0)
	if errno != 0 {
		return failed(f.op, "openat", errno)
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0); errno != 0 {
		return failed(f.op, "close", errno)
	}
	return nil
}

// open is the routine of that name.
type open struct{ named }

func newOpen(path string) (*open, error) {
	f, err := newNamed("open", path)
	return &open{f}, err
}

func (f *open) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := f.openAt(unix.O_RDONLY); err != nil {
			return err
		}
	}
	return nil
}

// create is the routine of that name.
type create struct{ named }

func newCreate(path string) (*create, error) {
	f, err := newNamed("create", path)
	return &create{f}, err
}

func (f *create) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := f.openAt(unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL); err != nil {
			return err
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_UNLINKAT, atCWD, uintptr(unsafe.Pointer(f.path)), 0); errno != 0 {
			return failed(f.op, "unlinkat", errno)
		}
	}
	return nil
}

// stat is the routine of that name.
type stat struct {
	named

	buf unix.Stat_t
}

func newStat(path string) (*stat, error) {
	f, err := newNamed("stat", path)
	return &stat{named: f}, err
}

func (f *stat) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		_, _, errno := syscall.RawSyscall6(unix.SYS_NEWFSTATAT, atCWD, uintptr(unsafe.Pointer(f.path)), uintptr(unsafe.Pointer(&f.buf)), 0, 0, 0)
		if errno != 0 {
			return failed(f.op, "newfstatat", errno)
		}
	}
	return nil
}

// reader is the routine read.
type reader struct {
	plain

	fd  int
	buf [512]byte
}

func newRead(path string) (*reader, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, asFailure("read", "openat", err)
	}
	return &reader{fd: fd}, nil
}

func (f *reader) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		got, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(f.fd), uintptr(unsafe.Pointer(&f.buf)), uintptr(len(f.buf)), 0, 0, 0)
		if err := moved("read", "pread64", got, len(f.buf), errno); err != nil {
			return err
		}
	}
	return nil
}

func (f *reader) close() { _ = unix.Close(f.fd) }

// moved checks that a read or write moved all that it should.
func moved(op, call string, got uintptr, want int, errno syscall.Errno) error {
	if errno != 0 {
		return failed(op, call, errno)
	}
	if got != uintptr(want) {
		return &Failure{Op: op, Call: call, Detail: fmt.Sprintf("%d of %d bytes", got, want)}
	}
	return nil
}

// asFailure makes a Failure of an error of package unix.
func asFailure(op, call string, err error) error {
	if errno, ok := err.(unix.Errno); ok { //nolint:errorlint // package unix returns bare errnos
		return failed(op, call, errno)
	}
	return fmt.Errorf("%s: %s: %w", op, call, err)
}

// copier is the routine copy, with its block size. It goes on where the last batch ended, and from the end to the start.
type copier struct {
	plain

	op       string
	from, to int // descriptors
	buf      []byte
	blocks   int // of a file
	at       int // next block
	copied   int // blocks in all
}

func newCopy(dir string, size, blocks int) (*copier, error) {
	c := &copier{op: "copy", from: -1, to: -1, buf: make([]byte, size), blocks: blocks}
	if size != 4096 {
		c.op = fmt.Sprintf("copy%d", size)
	}
	var err error
	if c.from, err = unix.Open(filepath.Join(dir, sourceFile), unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return nil, asFailure(c.op, "openat", err)
	}
	if c.to, err = unix.Open(filepath.Join(dir, targetFile), unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		c.close()
		return nil, asFailure(c.op, "openat", err)
	}
	return c, nil
}

func (c *copier) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		if err := c.block(); err != nil {
			return err
		}
		c.copied++
	}
	return nil
}

func (c *copier) block() error {
	if c.at == c.blocks {
		c.at = 0
		for _, fd := range [...]int{c.from, c.to} {
			if _, _, errno := syscall.RawSyscall(unix.SYS_LSEEK, uintptr(fd), 0, unix.SEEK_SET); errno != 0 {
				return failed(c.op, "lseek", errno)
			}
		}
	}
	size := len(c.buf)
	got, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(c.from), uintptr(unsafe.Pointer(&c.buf[0])), uintptr(size))
	if err := moved(c.op, "read", got, size, errno); err != nil {
		return err
	}
	got, _, errno = syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.to), uintptr(unsafe.Pointer(&c.buf[0])), uintptr(size))
	if err := moved(c.op, "write", got, size, errno); err != nil {
		return err
	}
	c.at++
	return nil
}

func (c *copier) close() {
	for _, fd := range [...]int{c.from, c.to} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
