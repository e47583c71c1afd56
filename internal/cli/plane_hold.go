package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/area/admission/node"
	"tare/internal/clock"
	"tare/internal/plane"
	"tare/internal/proc"
	"tare/internal/record"
)

const (
	// simulatedNodes is the name of the process that stands in for kubelets.
	simulatedNodes = "simulated-nodes"
	// nodesWithin bounds the registration of 5000 nodes on a busy host.
	nodesWithin = 5 * time.Minute
	// guardEvery is how often a holder looks whether its plane is whole.
	guardEvery = time.Second
)

func (a *app) planeHoldCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hold", Short: "Hold a control plane (tare plane up starts this itself)", Hidden: true, Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var o holdOptions
			if err := proc.ReadConfig(bufio.NewReader(a.Stdin), &o); err != nil {
				return err
			}
			// It has no terminal, and who waits for it may be gone when it speaks.
			signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM)
			defer stop()
			return a.holdPlane(ctx, o)
		},
	}
}

// holdPlane is a holder's whole life.
func (a *app) holdPlane(ctx context.Context, o holdOptions) error {
	ticks, err := proc.StartTicks(os.Getpid())
	if err != nil {
		return err
	}
	now := clock.System{}.Now()
	lock, err := record.Lock(locks(), "plane "+filepath.Join(o.Shelf, o.Name), record.Holder{Run: o.Name, Since: now})
	if err != nil {
		return a.say(holderLine{Failed: fmt.Sprintf("another process holds plane %s, or is about to", o.Name)})
	}
	defer lock.Unlock() //nolint:errcheck // the kernel does it, too
	h := &holder{
		options: o, shelf: plane.KeptFolder{Dir: o.Shelf}, log: a.logger(a.Stderr),
		kept: plane.Kept{
			Name: o.Name, Version: o.Version, Kubernetes: o.Binary.Kubernetes, Etcd: o.Etcd, PSP: o.PSP, Nodes: o.Nodes,
			Holder: proc.ID{PID: os.Getpid(), StartTicks: ticks}, Since: now.UTC().Truncate(time.Second), Logs: o.Logs,
		},
	}
	return h.hold(ctx, a.say)
}

// say tells whoever started the holder.
func (a *app) say(l holderLine) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(append(text, '\n'))
	return err
}

// A holder keeps a plane running, and its state file true.
type holder struct {
	options holdOptions
	shelf   plane.KeptFolder
	log     *slog.Logger

	mu   sync.Mutex
	kept plane.Kept
}

// hold starts the plane, says how that went, and holds it until ctx ends or a component does.
func (h *holder) hold(ctx context.Context, say func(holderLine) error) error {
	p, nodes, err := h.start(ctx)
	if err != nil {
		return errors.Join(err, say(holderLine{Failed: err.Error()}), h.shelf.Drop(h.options.Name))
	}
	why := h.announce(p, say)
	if why == nil {
		why = h.guard(ctx, p, nodes)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), holdersTurn)
	defer cancel()
	if nodes != nil {
		why = errors.Join(why, nodes.Stop(closing), h.gone(simulatedNodes))
	}
	why = errors.Join(why, p.Close(closing))
	if why == nil {
		return h.shelf.Drop(h.options.Name)
	}
	return errors.Join(why, h.change(func(k *plane.Kept) { k.Failed = why.Error() }))
}

// start brings up the plane and its nodes; after an error nothing is left.
func (h *holder) start(ctx context.Context) (*plane.Plane, *proc.Child, error) {
	begin := clock.System{}.Now()
	if err := h.change(func(*plane.Kept) {}); err != nil {
		return nil, nil, err
	}
	p, err := plane.Start(ctx, plane.Config{
		Binary: h.options.Binary, Dir: h.options.Logs, Nodes: h.options.Nodes > 0, Etcd: h.options.Etcd, PSP: h.options.PSP,
		Log: h.log, Clock: clock.System{}, Born: h.born, Folder: h.folder, Gone: h.gone,
	})
	if err != nil || h.options.Nodes == 0 {
		return p, nil, err
	}
	nodes, err := h.startNodes(ctx, p)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close(context.WithoutCancel(ctx)))
	}
	p.ReadySeconds = clock.System{}.Now().Sub(begin).Seconds()
	return p, nodes, nil
}

func (h *holder) startNodes(ctx context.Context, p *plane.Plane) (*proc.Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file, to start simulated nodes from it: %w", err)
	}
	nodes, err := proc.Start(ctx, proc.Spec{
		Name: simulatedNodes, Path: self, Args: []string{"serve", "admission", "nodes"}, ReadyWithin: nodesWithin,
		Config:  node.Config{Server: p.Server(), CA: p.CA, Token: p.NodesToken, Nodes: h.options.Nodes},
		LogFile: filepath.Join(h.options.Logs, simulatedNodes+".log"),
		Born:    func(id proc.ID) error { return h.born(simulatedNodes, id) },
	})
	if err != nil {
		return nil, errors.Join(err, h.gone(simulatedNodes))
	}
	return nodes, nil
}

// announce says that the plane is ready. Nobody who listens is an error: it would be a plane that nobody knows of.
func (h *holder) announce(p *plane.Plane, say func(holderLine) error) error {
	err := h.change(func(k *plane.Kept) {
		k.Server, k.Kubeconfig, k.ReadySeconds, k.Store = p.Server(), p.Kubeconfig(), p.ReadySeconds, p.Store
	})
	if err != nil {
		return errors.Join(err, say(holderLine{Failed: err.Error()}))
	}
	h.mu.Lock()
	k := h.kept
	h.mu.Unlock()
	return say(holderLine{Ready: &k})
}

// guard returns nil when ctx ends, and otherwise what has failed.
func (h *holder) guard(ctx context.Context, p *plane.Plane, nodes *proc.Child) error {
	for (clock.System{}).Sleep(ctx, guardEvery) == nil {
		if err := p.Failed(); err != nil {
			return err
		}
		if nodes == nil {
			continue
		}
		select {
		case <-nodes.Exited():
			if err := nodes.Wait(ctx); err != nil {
				return err
			}
			return errors.New("the simulated nodes have ended by themselves")
		default:
		}
	}
	return nil
}

// change changes what is known of the plane, and writes it.
func (h *holder) change(what func(*plane.Kept)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	what(&h.kept)
	return h.shelf.Put(h.kept)
}

func (h *holder) born(name string, id proc.ID) error {
	return h.change(func(k *plane.Kept) { k.Processes = append(k.Processes, plane.Process{Name: name, ID: id}) })
}

func (h *holder) folder(path string) error {
	return h.change(func(k *plane.Kept) { k.Folders = append(k.Folders, path) })
}

// gone strikes out a process by its name, or a folder by its path.
func (h *holder) gone(name string) error {
	return h.change(func(k *plane.Kept) {
		k.Processes = slices.DeleteFunc(slices.Clone(k.Processes), func(p plane.Process) bool { return p.Name == name })
		k.Folders = slices.DeleteFunc(slices.Clone(k.Folders), func(f string) bool { return f == name })
	})
}
