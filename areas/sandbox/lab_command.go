package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"tare/area"
	"tare/areas/sandbox/vm"
	"tare/areas/sandbox/vm/shell"
	"tare/internal/build"
	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/kit/remote"
	"tare/internal/proc"
	"tare/internal/unit"
)

// labs are the commands of tare lab in a shell.
type labs struct{ *area.Shell }

func labCommand() area.Command {
	return area.Command{
		Use: "lab", Short: "Boot a kernel of the distribution in a virtual machine", Group: area.ThisHost,
		Long: "Boots a kernel of the distribution in QEMU, without disk and network, to look at what this host's kernel\n" +
			"cannot do. Experiments with 'on: lab' boot machines of their own; this one is for exploring.",
		Below: []area.Command{labUp(), labRun(), labDown(), labHold(), labInit(), labAgent(), labShell()},
	}
}

// labOptions say which machine to boot.
type labOptions struct {
	Kernel string   `json:"kernel,omitempty"`
	LSM    string   `json:"lsm"`
	With   []string `json:"with,omitempty"`
	Dir    string   `json:"dir,omitempty"` // for the machine's files
}

// flags adds the flags of a machine.
func (o *labOptions) flags(f *flag.FlagSet) {
	f.StringVar(&o.Kernel, "kernel", "", "release of the kernel or its beginning, such as 6.1 (default: newest)")
	f.StringVar(&o.LSM, "lsm", "landlock,lockdown,yama,apparmor,bpf", "security modules, in order")
	f.Func("with", "programs of this host to take along, with their libraries", func(text string) error {
		o.With = append(o.With, strings.Split(text, ",")...)
		return nil
	})
}

func labUp() area.Command {
	var o labOptions
	return area.Command{
		Use: "up", Short: "Boot a lab VM and leave it running",
		Long:  "Boots a lab VM, returns when it is up, and leaves it running until 'tare lab down'.",
		Flags: o.flags,
		Run:   func(ctx context.Context, sh *area.Shell, _ []string) error { return labs{sh}.labUp(ctx, o) },
	}
}

func labRun() area.Command {
	var o labOptions
	return area.Command{
		Use: "run [flags] -- COMMAND…", Short: "Run a command as root in a lab VM", Least: 1, Most: -1, Rest: true,
		Long: "Runs a command as root in the lab VM that 'tare lab up' has started, or else in one that is booted for it.\n" +
			"The exit status is that of the command.",
		Example: "  tare lab run -- cat /sys/kernel/security/lsm", Flags: o.flags,
		Run: func(ctx context.Context, sh *area.Shell, args []string) error { return labs{sh}.labRun(ctx, o, args) },
	}
}

func labDown() area.Command {
	return area.Command{
		Use: "down", Short: "End the lab VM that 'tare lab up' has started",
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error { return labs{sh}.labDown(ctx) },
	}
}

// labInit, labAgent and labShell are what runs in a lab VM.
func labInit() area.Command {
	return area.Command{
		Use: "init PROGRAM", Short: "First process of a lab VM", Hidden: true, Least: 1, Most: -1,
		Run: func(ctx context.Context, sh *area.Shell, args []string) error {
			// There is no /proc yet to look up where this program is.
			return vm.Init(ctx, sh.Stderr, vm.GuestSelf, append([]string{"lab"}, args...)...)
		},
	}
}

func labAgent() area.Command {
	return area.Command{
		Use: "agent AREA", Short: "Measure in a lab VM", Hidden: true, Least: 1, Most: 1,
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			return remote.Serve(ctx, Area{}, sh.Log, sh.Stdin, sh.Stdout)
		},
	}
}

func labShell() area.Command {
	return area.Command{
		Use: "shell", Short: "Run commands in a lab VM", Hidden: true,
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			return shell.Serve(ctx, sh.Stdin, sh.Stdout)
		},
	}
}

// bootLab boots a machine whose program runs commands. Its files are in o.Dir.
func (a labs) bootLab(ctx context.Context, o labOptions) (*vm.Machine, error) {
	emulator, err := vm.Emulator()
	if err != nil {
		return nil, a.withInstall(err)
	}
	all, err := vm.Kernels(a.Getenv)
	if err != nil {
		return nil, err
	}
	kernel, err := vm.FindKernel(all, o.Kernel)
	if err != nil {
		return nil, fmt.Errorf("%w; to unpack one: %s", err, vm.InstallKernel(a.Getenv))
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, err := vm.NewGuest(ctx, self, append([]string{"sh"}, o.With...))
	if err != nil {
		return nil, err
	}
	initrd := filepath.Join(o.Dir, "initrd")
	if err := r.Save(initrd); err != nil {
		return nil, err
	}
	defer os.Remove(initrd) //nolint:errcheck // the machine has read it; the folder is removed later
	return vm.Boot(ctx, vm.Options{
		Emulator: emulator, Kernel: kernel, Initrd: initrd, Init: []string{vm.GuestSelf, "lab", "init", "shell"}, LSM: o.LSM,
		Clock: clock.System{}, Dir: o.Dir, Name: kernel.Release,
	})
}

// withInstall adds the command that installs what is missing.
func (a labs) withInstall(err error) error {
	if m, ok := errors.AsType[*vm.Missing](err); ok {
		return fmt.Errorf("%w; %s", err, m.Install)
	}
	return err
}

func (a labs) labRun(ctx context.Context, o labOptions, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	conn, _, err := a.dialLab(ctx)
	if err != nil {
		return err
	}
	if conn != nil {
		defer conn.Close() //nolint:errcheck // nothing is buffered
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		return a.ranInLab(shell.Run(conn, args, a.Stdout))
	}
	o.Dir = filepath.Join(os.TempDir(), "tare-lab-"+rand.Text())
	if err := files.MakeNew(o.Dir); err != nil {
		return fmt.Errorf("make a folder for the machine: %w", err)
	}
	defer files.RemoveFolder(o.Dir) //nolint:errcheck // a temporary folder
	if _, err := os.Stat(args[0]); err == nil || !strings.Contains(args[0], "/") {
		o.With = append(o.With, args[0])
	}
	m, err := a.bootLab(ctx, o)
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // it ends with this process
	defer context.AfterFunc(ctx, func() { _ = m.Close() })()
	return a.ranInLab(shell.Run(m.Link, args, a.Stdout))
}

// ranInLab makes the exit status of a command that of this process.
func (a labs) ranInLab(status int, err error) error {
	if err != nil {
		return fmt.Errorf("in the lab VM: %w", err)
	}
	if status != 0 {
		return area.ExitError{Code: status}
	}
	return nil
}

// labFolder is where the machine of 'tare lab up' keeps its logs, its socket, and who holds it. It must be this user's.
func (a labs) labFolder() (string, error) {
	if dir, ok := a.Getenv("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return filepath.Join(dir, "tare", "lab"), nil
	}
	return build.Cache{Sub: filepath.Join("lab", "up"), Getenv: a.Getenv}.Folder()
}

// dialLab connects to the machine of 'tare lab up', and returns the process that holds it; conn is nil if there is
// none. It talks to nobody else, whatever listens at the socket.
func (a labs) dialLab(ctx context.Context) (conn *net.UnixConn, holder proc.ID, err error) {
	dir, err := a.labFolder()
	if err != nil {
		return nil, holder, err
	}
	folder, err := files.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, holder, nil
	}
	if err != nil {
		return nil, holder, fmt.Errorf("the lab VM's folder: %w", err)
	}
	defer folder.Close() //nolint:errcheck // nothing to lose
	text, err := folder.Read(labHolder, 4096)
	if errors.Is(err, os.ErrNotExist) {
		return nil, holder, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &holder)
	}
	if err != nil {
		return nil, holder, fmt.Errorf("who holds the lab VM: %w", err)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", folder.Join(labSocket))
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, holder, nil
	case err != nil:
		return nil, holder, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		return nil, holder, errors.Join(fmt.Errorf("%s is not a Unix socket", labSocket), c.Close())
	}
	if err := heldBy(conn, holder); err != nil {
		return nil, holder, errors.Join(err, conn.Close())
	}
	return conn, holder, nil
}

func (a labs) labUp(ctx context.Context, o labOptions) error {
	conn, _, err := a.dialLab(ctx)
	if err != nil {
		return err
	}
	if conn != nil {
		_ = conn.Close()
		return errors.New("a lab VM is up already; end it first: tare lab down")
	}
	if o.Dir, err = a.labFolder(); err != nil {
		return err
	}
	if err := a.clearLab(o.Dir); err != nil {
		return err
	}
	folder, err := files.Make(o.Dir)
	if err != nil {
		return err
	}
	defer folder.Close() //nolint:errcheck // nothing to lose
	a.Tell("booting; this takes 10 to 60 s\n")
	ready, err := launchLab(ctx, o)
	if err != nil {
		return err
	}
	a.Tell("Linux %s is up after %s; run commands in it with 'tare lab run -- COMMAND', end it with 'tare lab down'\n",
		ready.Kernel, unit.Seconds(ready.Seconds))
	return nil
}
