package sandbox

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"tare/internal/kit"
)

// outside is what this process keeps beside a worker that cannot get it under every policy: a TCP port, which the
// worker may listen on, and an abstract socket, which the worker may try to reach.
type outside struct {
	port     *kit.HeldPort
	abstract int // a descriptor
}

// openOutside reserves them and completes the policy. The worker binds the port, too (SO_REUSEPORT).
func openOutside(p *Policy) (*outside, error) {
	o := &outside{abstract: -1}
	if err := o.open(p); err != nil {
		return nil, errors.Join(fmt.Errorf("reserve a port and an abstract socket for a worker: %w", err), o.close())
	}
	return o, nil
}

func (o *outside) open(p *Policy) (err error) {
	if o.port, err = kit.HoldPort(); err != nil {
		return err
	}
	p.Port = int(o.port.Addr.Port())
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
	err := o.port.Close()
	if o.abstract >= 0 {
		err = errors.Join(err, unix.Close(o.abstract))
		o.abstract = -1
	}
	return err
}
