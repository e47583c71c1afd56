package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/sandbox/vm/shell"
	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/proc"
)

const (
	// labSocket is the socket of the process that holds a lab VM. Each connection is a conversation with its shell.
	labSocket = "socket"
	// labHolder is the file that says which process this is.
	labHolder = "holder.json"
	// labEndsWithin bounds how long the holder may take to end.
	labEndsWithin = 20 * time.Second
)

// labReady is the holder's only line: the machine is up, or why not.
type labReady struct {
	Kernel  string  `json:"kernel,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	Failed  string  `json:"failed,omitempty"`
}

// launchLab starts the holder of a machine, and returns when the machine is up.
func launchLab(ctx context.Context, o labOptions) (r labReady, err error) {
	line, err := kit.StartHolder(ctx, o.Dir, o, "lab", "hold")
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("the holder says %.80q: %w", line, err)
	}
	if r.Failed != "" {
		return r, errors.New(r.Failed)
	}
	return r, nil
}

func labHold() area.Command {
	return area.Command{
		Use: "hold", Short: "Hold a lab VM (tare lab up starts this itself)", Hidden: true,
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			var o labOptions
			if err := proc.ReadConfig(bufio.NewReader(sh.Stdin), &o); err != nil {
				return err
			}
			signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
			defer stop()
			return labs{sh}.holdLab(ctx, o)
		},
	}
}

// holdLab boots a machine and serves its shell until ctx or the machine ends.
func (a labs) holdLab(ctx context.Context, o labOptions) error {
	say := func(r labReady) error { return json.NewEncoder(a.Stdout).Encode(r) }
	unlock, err := a.lockLab(o.Dir)
	if err != nil {
		return say(labReady{Failed: err.Error()})
	}
	defer unlock() // the kernel does it, too
	m, err := a.bootLab(ctx, o)
	if err != nil {
		return errors.Join(say(labReady{Failed: err.Error()}), files.RemoveFolder(o.Dir))
	}
	defer files.RemoveFolder(o.Dir) //nolint:errcheck // the next machine removes it, too
	defer m.Close()                 //nolint:errcheck // it ends with this process
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(o.Dir, labSocket))
	if err != nil {
		return say(labReady{Failed: err.Error()})
	}
	if err := nameHolder(o.Dir, os.Getpid()); err != nil {
		return errors.Join(say(labReady{Failed: err.Error()}), listener.Close())
	}
	if err := say(labReady{Kernel: m.Release(), Seconds: m.Booted.Seconds()}); err != nil {
		return err
	}
	go func() {
		select {
		case <-m.Exited():
		case <-ctx.Done():
		}
		_ = listener.Close()
	}()
	return serveLab(m.Link, listener)
}

// lockLab keeps other processes from holding a lab VM in a folder, and from removing that.
func (a labs) lockLab(dir string) (unlock func(), err error) {
	unlock, err = a.Lock("lab VM "+dir, "tare lab up", clock.System{}.Now())
	if err != nil {
		return nil, fmt.Errorf("a lab VM boots, or is up; wait for it, and end it with 'tare lab down': %w", err)
	}
	return unlock, nil
}

// clearLab removes the files of a machine that has ended.
func (a labs) clearLab(dir string) error {
	unlock, err := a.lockLab(dir)
	if err != nil {
		return err
	}
	defer unlock()
	return files.RemoveFolder(dir)
}

// serveLab joins each connection with the machine's line, one at a time.
func serveLab(line shell.Line, l net.Listener) error {
	relay := shell.NewRelay(line)
	for {
		conn, err := l.Accept()
		if err != nil {
			return nil //nolint:nilerr // the listener was closed
		}
		go func() {
			defer conn.Close() //nolint:errcheck // nothing is buffered
			relay.Carry(conn)
		}()
	}
}

// labDown ends the holder, which its socket names, and its machine.
func (a labs) labDown(ctx context.Context) error {
	conn, holder, err := a.dialLab(ctx)
	if err != nil {
		return err
	}
	if conn == nil {
		a.Tell("no lab VM is up\n")
		return nil
	}
	_ = conn.Close()
	within, cancel := context.WithTimeout(ctx, labEndsWithin)
	defer cancel()
	if err := proc.Terminate(within, holder); err != nil {
		return fmt.Errorf("end the holder of the lab VM: %w", err)
	}
	if _, err := proc.KillStale(holder); err != nil { // if it still runs
		return err
	}
	a.Tell("the lab VM has ended\n")
	return nil
}

// nameHolder writes into the folder which process holds the machine.
func nameHolder(dir string, pid int) error {
	holder, err := proc.Identify(pid)
	if err != nil {
		return err
	}
	text, err := json.Marshal(holder)
	if err != nil {
		return err
	}
	folder, err := files.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Write(labHolder, text), folder.Close())
}

// heldBy returns an error unless the process at the other end of a connection is this one, of this user's.
func heldBy(conn *net.UnixConn, holder proc.ID) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		peer, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		return errors.Join(err, credErr)
	}
	if int(peer.Pid) != holder.PID || int(peer.Uid) != os.Geteuid() || !holder.Alive() {
		return fmt.Errorf("process %d of user %d listens at the lab VM's socket, and not its holder: nothing is sent to it",
			peer.Pid, peer.Uid)
	}
	return nil
}
