package admission

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

	"tare/area"
	"tare/areas/admission/node"
	"tare/areas/plane"
	"tare/internal/clock"
	"tare/internal/proc"
)

const (
	// simulatedNodes is the name of the process that simulates kubelets.
	simulatedNodes = "simulated-nodes"
	// heldNodesWithin limits how long the registration of 5000 nodes may take on a busy host.
	heldNodesWithin = 5 * time.Minute
	// guardEvery is how often a holder checks that its plane is complete.
	guardEvery = time.Second
)

func planeHold() area.Command {
	return area.Command{
		Use: "hold", Short: "Hold a control plane (tare plane up starts this itself)", Hidden: true,
		Run: func(ctx context.Context, sh *area.Shell, _ []string) error {
			var o holdOptions
			if err := proc.ReadConfig(bufio.NewReader(sh.Stdin), &o); err != nil {
				return err
			}
			// The holder has no terminal, and the process that waits for it may be gone when it writes.
			signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
			ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
			defer stop()
			return planes{sh}.holdPlane(ctx, o)
		},
	}
}

// holdPlane runs a holder until its plane has ended.
func (a planes) holdPlane(ctx context.Context, o holdOptions) error {
	self, err := proc.Identify(os.Getpid())
	if err != nil {
		return err
	}
	now := clock.System{}.Now()
	unlock, err := a.Lock("plane "+filepath.Join(o.StateFolder, o.Name), o.Name, now)
	if err != nil {
		return a.sendLine(holderLine{Failed: fmt.Sprintf("another process holds plane %s, or is about to", o.Name)})
	}
	defer unlock() // the kernel does it, too
	h := &holder{
		options: o, states: plane.KeptFolder{Dir: o.StateFolder}, log: a.Log,
		kept: plane.Kept{
			Name: o.Name, Version: o.Version, Kubernetes: o.Binary.Kubernetes, Etcd: o.Etcd, PSP: o.PSP, Nodes: o.Nodes,
			Holder: self, Since: now.UTC().Truncate(time.Second), Logs: o.Logs,
		},
	}
	return h.hold(ctx, a.sendLine)
}

// sendLine sends a line to the process that started the holder.
func (a planes) sendLine(l holderLine) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(append(text, '\n'))
	return err
}

// A holder keeps a plane running and its state file up to date.
type holder struct {
	options holdOptions
	states  plane.KeptFolder
	log     *slog.Logger

	mu   sync.Mutex
	kept plane.Kept
}

// hold starts the plane, reports the result, and keeps the plane until ctx ends or a component does.
func (h *holder) hold(ctx context.Context, say func(holderLine) error) error {
	p, nodes, err := h.start(ctx)
	if err != nil {
		dropped := h.states.Drop(h.options.Name) // before the failure is told: its hearer may ask for the state
		return errors.Join(err, say(holderLine{Failed: err.Error()}), dropped)
	}
	why := h.announce(p, say)
	if why == nil {
		why = h.watch(ctx, p, nodes)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), holderEndsWithin)
	defer cancel()
	if nodes != nil {
		why = errors.Join(why, nodes.Stop(closing), h.removeEntry(simulatedNodes))
	}
	why = errors.Join(why, p.Close(closing))
	if why == nil {
		return h.states.Drop(h.options.Name)
	}
	return errors.Join(why, h.update(func(k *plane.Kept) { k.Failed = why.Error() }))
}

// start starts the plane and its nodes; after an error it has removed all of them.
func (h *holder) start(ctx context.Context) (*plane.Plane, *proc.Child, error) {
	begin := clock.System{}.Now()
	if err := h.update(func(*plane.Kept) {}); err != nil {
		return nil, nil, err
	}
	p, err := plane.Start(ctx, plane.Config{
		Binary: h.options.Binary, Dir: h.options.Logs, Nodes: h.options.Nodes > 0, Etcd: h.options.Etcd, PSP: h.options.PSP,
		Log: h.log, Clock: clock.System{}, Born: h.born, Folder: h.folder, Gone: h.removeEntry,
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
		return nil, fmt.Errorf("find tare's own executable, to start simulated nodes with it: %w", err)
	}
	nodes, err := proc.Start(ctx, proc.Spec{
		Name: simulatedNodes, Path: self, Args: []string{"serve", "admission", "nodes"}, ReadyWithin: heldNodesWithin,
		Config:  node.Config{Server: p.Server(), CA: p.CA, Token: p.NodesToken, Nodes: h.options.Nodes},
		LogFile: filepath.Join(h.options.Logs, simulatedNodes+".log"),
		Born:    func(id proc.ID) error { return h.born(simulatedNodes, id) },
	})
	if err != nil {
		return nil, errors.Join(err, h.removeEntry(simulatedNodes))
	}
	return nodes, nil
}

// announce reports that the plane is ready. It fails if nobody reads the report: nobody would know of the plane.
func (h *holder) announce(p *plane.Plane, say func(holderLine) error) error {
	err := h.update(func(k *plane.Kept) {
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

// watch returns nil when ctx ends, or an error that names what has failed.
func (h *holder) watch(ctx context.Context, p *plane.Plane, nodes *proc.Child) error {
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
			return errors.New("the simulated nodes ended unexpectedly")
		default:
		}
	}
	return nil
}

// update changes the plane's state and writes it to the state file.
func (h *holder) update(what func(*plane.Kept)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	what(&h.kept)
	return h.states.Put(h.kept)
}

func (h *holder) born(name string, id proc.ID) error {
	return h.update(func(k *plane.Kept) { k.Processes = append(k.Processes, plane.Process{Name: name, ID: id}) })
}

func (h *holder) folder(path string) error {
	return h.update(func(k *plane.Kept) { k.Folders = append(k.Folders, path) })
}

// removeEntry removes a process by its name, or a folder by its path, from the state.
func (h *holder) removeEntry(name string) error {
	return h.update(func(k *plane.Kept) {
		k.Processes = slices.DeleteFunc(slices.Clone(k.Processes), func(p plane.Process) bool { return p.Name == name })
		k.Folders = slices.DeleteFunc(slices.Clone(k.Folders), func(f string) bool { return f == name })
	})
}
