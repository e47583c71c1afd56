package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// outside is what this process keeps beside a worker that cannot get it under every policy: a TCP port, which the
// worker may listen on, and an abstract socket, which the worker may try to reach.
type outside struct {
	port, abstract int // descriptors
}

// openOutside reserves them and completes the policy. The port stays bound, so that no other process gets it; the
// worker binds it too (SO_REUSEPORT).
func openOutside(p *Policy) (*outside, error) {
	o := &outside{port: -1, abstract: -1}
	if err := o.open(p); err != nil {
		return nil, errors.Join(fmt.Errorf("reserve a port and an abstract socket for a worker: %w", err), o.close())
	}
	return o, nil
}

func (o *outside) open(p *Policy) (err error) {
	if o.port, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	if err := unix.SetsockoptInt(o.port, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return err
	}
	if err := unix.Bind(o.port, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	name, err := unix.Getsockname(o.port)
	if err != nil {
		return err
	}
	if in, ok := name.(*unix.SockaddrInet4); ok {
		p.Port = in.Port
	}
	if o.abstract, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return err
	}
	return unix.Bind(o.abstract, &unix.SockaddrUnix{Name: "@" + outsideName(*p)})
}

// close releases both. It may be called twice.
func (o *outside) close() error {
	if o == nil {
		return nil
	}
	var errs []error
	for _, fd := range []*int{&o.port, &o.abstract} {
		if *fd >= 0 {
			errs = append(errs, unix.Close(*fd))
			*fd = -1
		}
	}
	return errors.Join(errs...)
}
