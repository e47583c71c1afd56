package admission

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tare/area"
	"tare/areas/admission/node"
	"tare/areas/plane"
	"tare/internal/build"
	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/shell"
	"tare/internal/unit"
)

// defaultPlane is the name of a plane without --name.
const defaultPlane = "default"

// interruptedCode is the exit code of a command that an interrupt ended.
const interruptedCode = 130

// planes are the commands of tare plane in a shell.
type planes struct{ *area.Shell }

// commands is area.Parts.Commands.
func commands() []area.Command {
	return []area.Command{
		{
			Use: "plane", Short: "Start and stop a Kubernetes control plane to experiment with", Group: area.ThisHost,
			Long: "Starts a real control plane on this host: etcd, kube-apiserver and, with nodes, kube-scheduler,\n" +
				"kube-controller-manager and simulated nodes, which start no containers. Runs start their own control\n" +
				"planes; this one is for exploring and for trying policies.",
			Below: []area.Command{planeUp(), planeDown(), planeStatusCommand(), planeHold()},
		},
	}
}

// planeName adds the flag --name.
func planeName(f *flag.FlagSet, name *string) {
	f.StringVar(name, "name", defaultPlane, "name of the plane, to keep several apart")
}

func planeUp() area.Command {
	var o holdOptions
	var version, file string
	return area.Command{
		Use: "up", Short: "Start a control plane and leave it running",
		Long: "Starts a control plane, returns when it is ready, and leaves it running until 'tare plane down'.\n" +
			"Standard output is meant for a shell: eval \"$(tare plane up)\".",
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			o.Version = plane.Version(version)
			if err := o.check(); err != nil {
				return err
			}
			return planes{sh}.planeUp(ctx, o, file)
		},
		Flags: func(f *flag.FlagSet) {
			planeName(f, &o.Name)
			f.StringVar(&version, "version", string(plane.V136),
				"version of Kubernetes: 1.36, or 1.24, the last with PodSecurityPolicy")
			f.IntVar(&o.Nodes, "nodes", 0,
				"number of simulated nodes; with at least one, a scheduler and a controller-manager run as well")
			f.StringVar(&o.Etcd, "etcd", plane.Tmpfs,
				"where etcd keeps its data: tmpfs, or disk with an fsync for each transaction")
			f.BoolVar(&o.PSP, "psp", false,
				"with the admission plugin PodSecurityPolicy (1.24), which denies every pod until a policy allows it")
			f.StringVar(&file, "binary", "", "a tare-plane binary that was built elsewhere")
		},
	}
}

func (o holdOptions) check() error {
	if err := plane.CheckName(o.Name); err != nil {
		return area.Usage("--name: %w", err)
	}
	switch {
	case o.Version != plane.V136 && o.Version != plane.V124:
		return area.Usage("--version %s: unknown version; versions are %v", o.Version, plane.Versions())
	case o.Etcd != plane.Tmpfs && o.Etcd != plane.Disk:
		return area.Usage("--etcd %s: want %s or %s", o.Etcd, plane.Tmpfs, plane.Disk)
	case o.Nodes < 0 || o.Nodes > node.MostNodes:
		return area.Usage("--nodes %d: want 0 to %d", o.Nodes, node.MostNodes)
	case o.PSP && o.Version != plane.V124:
		return area.Usage("--psp: PodSecurityPolicy needs --version %s", plane.V124)
	}
	return nil
}

// stateFolder returns the folder of state files: below the user's runtime folder, which a reboot empties together with
// the planes' processes, or below the cache.
func (a planes) stateFolder() (plane.KeptFolder, error) {
	if dir, ok := a.Getenv("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return plane.KeptFolder{Dir: filepath.Join(dir, "tare", "planes")}, nil
	}
	dir, err := a.planesFolder()
	return plane.KeptFolder{Dir: dir}, err
}

// planesFolder returns the folder of the planes' logs and of their data on disk.
func (a planes) planesFolder() (string, error) {
	dir, err := build.Cache{Sub: "planes", Getenv: a.Getenv}.Folder()
	if err != nil {
		return "", fmt.Errorf("find a folder for the logs of control planes: %w; set %s to name one", err, build.Variable)
	}
	return dir, nil
}

func (a planes) planeUp(ctx context.Context, o holdOptions, file string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	states, err := a.stateFolder()
	if err != nil {
		return err
	}
	there, err := a.alreadyUp(ctx, states, o)
	if there || err != nil {
		return err
	}
	logs, err := a.planesFolder()
	if err != nil {
		return err
	}
	o.StateFolder, o.Logs = states.Dir, filepath.Join(logs, o.Name)
	o.Binary, err = plane.Find(ctx, o.Version, plane.Host{
		Path: file, Log: a.Log, Getenv: a.Getenv, Clock: clock.System{},
		Tell: func(line string) { a.Tell("%s\n", line) },
	})
	if err != nil {
		return interrupted(ctx, withNext(err))
	}
	// The logs of an earlier plane of this name are of no use now.
	folder, err := files.Make(logs)
	if err == nil {
		err = errors.Join(folder.RemoveAll(o.Name), makeIn(folder, o.Name), folder.Close())
	}
	if err != nil {
		return fmt.Errorf("make a folder for logs: %w", err)
	}
	a.Tell("starting Kubernetes %s%s\n", o.Binary.Kubernetes, nodesText(o.Nodes))
	k, err := launch(ctx, o)
	if ctx.Err() != nil && err != nil { // logs of a failed plane are kept
		err = errors.Join(err, files.RemoveFolder(o.Logs))
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	a.Tell("ready after %s\n", unit.Seconds(k.ReadySeconds))
	a.printUp(k)
	return nil
}

// makeIn makes a folder in another.
func makeIn(folder *files.Folder, name string) error {
	made, err := folder.Make(name)
	if err != nil {
		return err
	}
	return made.Close()
}

// interrupted reports the user's interrupt rather than the errors that followed from it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return area.ExitError{Code: interruptedCode, Err: errors.New("interrupted; all of the plane was removed")}
	}
	return err
}

// withNext adds the next step if a binary is missing.
func withNext(err error) error {
	if m, ok := errors.AsType[*plane.Missing](err); ok {
		return fmt.Errorf("%w; %s", err, m.Next)
	}
	return err
}

func nodesText(n int) string {
	switch n {
	case 0:
		return " without nodes"
	case 1:
		return " with 1 simulated node"
	}
	return fmt.Sprintf(" with %d simulated nodes", n)
}

// alreadyUp reports a running plane of this name with the wanted options, and removes the remains of a lost one.
func (a planes) alreadyUp(ctx context.Context, states plane.KeptFolder, o holdOptions) (bool, error) {
	k, ok, err := states.Get(o.Name)
	if !ok || err != nil {
		return false, err
	}
	down := "tare plane down" + nameFlag(o.Name)
	switch k.State() {
	case plane.Running:
		if k.Version != o.Version || k.Etcd != o.Etcd || k.Nodes != o.Nodes || k.PSP != o.PSP {
			return false, fmt.Errorf("plane %s is up already, as %s; end it first (%s), or start another with --name",
				k.Name, describe(k), down)
		}
		a.Tell("plane %s is up already, as %s\n", k.Name, describe(k))
		a.printUp(k)
		return true, nil
	case plane.Starting:
		return false, fmt.Errorf("plane %s is being started by process %d; wait for it ('tare plane status'), or end it: %s",
			k.Name, k.Holder.PID, down)
	case plane.Lost, plane.Broken:
	}
	a.Tell("removing the remains of an earlier plane %s\n", k.Name)
	return false, errors.Join(k.End(ctx), states.Drop(k.Name))
}

// printUp writes shell commands to standard output and a message to standard error.
func (a planes) printUp(k plane.Kept) {
	a.Print("export KUBECONFIG=%s\n", shell.Word(k.Kubeconfig))
	a.Tell("Next: KUBECONFIG=%s kubectl get namespaces\n      tare plane status; tare plane down%s\n",
		shell.Word(k.Kubeconfig), nameFlag(k.Name))
	if k.Nodes > 0 {
		a.Tell("note: %s\n", node.Config{Nodes: k.Nodes}.Note())
	}
}

func nameFlag(name string) string {
	if name == defaultPlane {
		return ""
	}
	return " --name " + name
}

// describe names a plane's version and options.
func describe(k plane.Kept) string {
	store := k.Store
	if store == "" {
		store = k.Etcd
	}
	parts := []string{"Kubernetes " + k.Kubernetes + nodesText(k.Nodes), "etcd on " + store}
	if k.PSP {
		parts = append(parts, "with PodSecurityPolicy")
	}
	return strings.Join(parts, ", ")
}

func planeDown() area.Command {
	var name string
	var every bool
	return area.Command{
		Use: "down", Short: "Stop a control plane",
		Long: "Stops a control plane and returns when all of it is gone, even if the process that held it was killed.",
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			if err := plane.CheckName(name); err != nil {
				return area.Usage("--name: %w", err)
			}
			return planes{sh}.planeDown(ctx, name, every)
		},
		Flags: func(f *flag.FlagSet) {
			planeName(f, &name)
			f.BoolVar(&every, "all", false, "stop all planes that 'up' started")
		},
	}
}

func (a planes) planeDown(ctx context.Context, name string, every bool) error {
	states, err := a.stateFolder()
	if err != nil {
		return err
	}
	if !every {
		k, ok, err := states.Get(name)
		switch {
		case err != nil:
			return err
		case !ok:
			a.Print("no plane %s is up\n", name)
			return nil
		}
		return a.endPlane(ctx, states, k)
	}
	list, err := states.List()
	for _, k := range list {
		err = errors.Join(err, a.endPlane(ctx, states, k))
	}
	if len(list) == 0 && err == nil {
		a.Print("no plane is up\n")
	}
	return err
}

func (a planes) endPlane(ctx context.Context, states plane.KeptFolder, k plane.Kept) error {
	begin := clock.System{}.Now()
	// A holder that is asked to end removes the state file itself. This removes it for a holder that could not.
	if err := k.End(ctx); err != nil {
		return fmt.Errorf("end plane %s: %w; its state is kept, so you can run this command again", k.Name, err)
	}
	logs, err := a.planesFolder()
	if err != nil {
		return err
	}
	// The folder of logs follows from the name: what the state says of it is for people to read.
	if err := errors.Join(states.Drop(k.Name), files.RemoveFolder(filepath.Join(logs, k.Name))); err != nil {
		return fmt.Errorf("end plane %s: %w", k.Name, err)
	}
	a.Print("plane %s is down, after %s\n", k.Name,
		unit.Seconds(clock.System{}.Now().Sub(begin).Round(time.Millisecond).Seconds()))
	return nil
}
