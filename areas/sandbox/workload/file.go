package workload

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// atCWD is AT_FDCWD as an argument of a system call; since paths are absolute, it is not used.
const atCWD = ^uintptr(99)

// cPath is a path that can be passed to system calls without allocation.
type cPath struct {
	plain

	op   string
	path *byte
}

func newCPath(op, path string) (cPath, error) {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return cPath{}, fmt.Errorf("%s: path %q: %w", op, path, err)
	}
	return cPath{op: op, path: p}, nil
}

// openAt opens the path and closes it again.
func (f *cPath) openAt(flags int) error {
	fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, atCWD, uintptr(unsafe.Pointer(f.path)),
		uintptr(flags|unix.O_CLOEXEC), 0o600, 0, 0)
	if errno != 0 {
		return failed(f.op, "openat", errno)
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0); errno != 0 {
		return failed(f.op, "close", errno)
	}
	return nil
}

// open is the routine "open".
type open struct{ cPath }

func newOpen(path string) (*open, error) {
	f, err := newCPath("open", path)
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

// create is the routine "create".
type create struct{ cPath }

func newCreate(path string) (*create, error) {
	f, err := newCPath("create", path)
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

// stat is the routine "stat".
type stat struct {
	cPath

	buf unix.Stat_t
}

func newStat(path string) (*stat, error) {
	f, err := newCPath("stat", path)
	return &stat{cPath: f}, err
}

func (f *stat) batch(n int, halt *atomic.Bool) error {
	for range n {
		if halt.Load() {
			return errHalted
		}
		_, _, errno := syscall.RawSyscall6(unix.SYS_NEWFSTATAT, atCWD, uintptr(unsafe.Pointer(f.path)),
			uintptr(unsafe.Pointer(&f.buf)), 0, 0, 0)
		if errno != 0 {
			return failed(f.op, "newfstatat", errno)
		}
	}
	return nil
}

// reader is the routine "read".
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
		got, _, errno := syscall.RawSyscall6(unix.SYS_PREAD64, uintptr(f.fd), uintptr(unsafe.Pointer(&f.buf)),
			uintptr(len(f.buf)), 0, 0, 0)
		if err := checkCount("read", "pread64", got, len(f.buf), errno); err != nil {
			return err
		}
	}
	return nil
}

func (f *reader) close() { _ = unix.Close(f.fd) }

// checkCount checks that a read or write transferred all bytes.
func checkCount(op, call string, got uintptr, want int, errno syscall.Errno) error {
	if errno != 0 {
		return failed(op, call, errno)
	}
	if got != uintptr(want) {
		return &Failure{Op: op, Call: call, Detail: fmt.Sprintf("%d of %d bytes", got, want)}
	}
	return nil
}

// asFailure turns an error of package unix into a Failure.
func asFailure(op, call string, err error) error {
	if errno, ok := err.(unix.Errno); ok { //nolint:errorlint // package unix returns bare errnos
		return failed(op, call, errno)
	}
	return fmt.Errorf("%s: %s: %w", op, call, err)
}

// copier is the routine "copy" with a block size. Each batch continues where the last one ended, and wraps around at
// the end.
type copier struct {
	plain

	op       string
	from, to int // descriptors
	buf      []byte
	blocks   int // of a file
	at       int // next block
	copied   int // blocks in total
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
	if err := checkCount(c.op, "read", got, size, errno); err != nil {
		return err
	}
	got, _, errno = syscall.RawSyscall(unix.SYS_WRITE, uintptr(c.to), uintptr(unsafe.Pointer(&c.buf[0])), uintptr(size))
	if err := checkCount(c.op, "write", got, size, errno); err != nil {
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
