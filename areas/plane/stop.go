package plane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"tare/internal/files"
	"tare/internal/proc"
)

// Close ends the components in the reverse order of their dependencies, waits until their ports are free, and removes
// the plane's folders. When ctx ends, it kills what still runs; nothing is left in either case. Calling it again does
// nothing.
func (p *Plane) Close(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	err := p.stopAll(ctx)
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
	return errors.Join(err, p.remove())
}

// Restart ends all components, including those that have ended or hang, and starts them again on the same ports, with
// the same authority, tokens and data. It returns when they are ready; after an error only Restart and Close may be
// called.
func (p *Plane) Restart(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if len(p.folders) == 0 {
		return errors.New("restart control plane: it is closed")
	}
	if err := p.stopAll(ctx); err != nil {
		return fmt.Errorf("restart control plane: %w", err)
	}
	if err := p.startAll(ctx); err != nil {
		return fmt.Errorf("restart control plane: %w", err)
	}
	return nil
}

// RestartServer kills kube-apiserver and starts it again, as Restart does; the other components run on. It returns when
// the server is ready.
func (p *Plane) RestartServer(ctx context.Context) error {
	p.turn.Lock()
	defer p.turn.Unlock()
	if err := p.restartServer(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", APIServer, err)
	}
	return nil
}

func (p *Plane) restartServer(ctx context.Context) error {
	server, err := p.running(APIServer)
	if err != nil {
		return err
	}
	if err := server.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	err = p.stop(ctx, APIServer)
	if err == nil {
		err = awaitFree(ctx, p.config.Clock, []uint16{p.ports.server}, never)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Within, fmt.Errorf("not ready within %v", p.config.Within))
	defer cancel()
	p.client.CloseIdleConnections()
	if err := p.spawn(ctx, APIServer); err != nil {
		return causeOr(ctx, err)
	}
	return p.awaitHealth(ctx, APIServer)
}

// Freeze stops a component that runs, and returns when it has stopped. thaw lets it go on.
func (p *Plane) Freeze(ctx context.Context, component string) (thaw func(context.Context) error, err error) {
	c, err := p.running(component)
	if err != nil {
		return nil, err
	}
	return c.Freeze(ctx)
}

// running is the process of a component that has been started.
func (p *Plane) running(component string) (*proc.Child, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.children[component]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%s does not run", component)
}

// stopAll stops the components in the reverse order of their dependencies.
func (p *Plane) stopAll(ctx context.Context) error {
	begin, ports := ticksNow(), p.portsInUse()
	err := errors.Join(p.stop(ctx, Scheduler, ControllerManager), p.stop(ctx, APIServer), p.stop(ctx, Etcd))
	return errors.Join(err, awaitFree(context.WithoutCancel(ctx), p.config.Clock, ports, begin))
}

// portsInUse are those of the components that run. The others may be another process's by now, also another control
// plane's.
func (p *Plane) portsInUse() (out []uint16) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, c := range p.children {
		select {
		case <-c.Exited():
		default:
			if port := p.ports.of(name); port != 0 {
				out = append(out, port)
			}
		}
	}
	return out
}

// stop ends components concurrently. From its start on, their end is no failure.
func (p *Plane) stop(ctx context.Context, components ...string) error {
	errs := make([]error, len(components))
	var wg sync.WaitGroup
	for i, name := range components {
		if c := p.forget(name); c != nil {
			wg.Go(func() { errs[i] = errors.Join(c.Stop(ctx), p.gone(name)) })
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p *Plane) forget(component string) *proc.Child {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.children[component]
	delete(p.children, component)
	return c
}

// Failed returns which component has ended by itself, with the last lines of its log; nil: all run.
func (p *Plane) Failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.components() {
		c := p.children[name]
		if c == nil {
			continue
		}
		select {
		case <-c.Exited():
		default:
			continue
		}
		if err := c.Wait(context.Background()); err != nil { // it has ended: this does not block
			return err
		}
		return fmt.Errorf("%s: ended by itself, with exit status 0; see its log %s", name, p.LogFile(name))
	}
	return nil
}

// holderWithin is how long a holder may take to close its plane: each component has its own grace.
const holderWithin = 60 * time.Second

// End ends a kept plane and returns when nothing of it is left. It asks the holder first, which closes the plane in
// order, and then kills and removes what remains. When ctx ends, the holder is killed.
func (k Kept) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holderWithin)
	defer cancel()
	err := proc.Terminate(ctx, k.Holder)
	_, killed := proc.KillStale(k.Holder) // if it still runs
	return errors.Join(err, killed, k.Clear())
}

// Clear kills the components that still run and removes the folders. It is for planes whose holder has ended, and may
// be called twice.
func (k Kept) Clear() error {
	var errs []error
	for _, p := range k.Processes {
		if _, err := proc.KillStale(p.ID); err != nil {
			errs = append(errs, fmt.Errorf("end %s: %w", p.Name, err))
		}
	}
	for _, dir := range k.Folders {
		if err := RemoveFolder(dir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RemoveFolder removes a folder that a plane made and reported to Config.Folder. It succeeds if the folder does not
// exist, and refuses others.
func RemoveFolder(dir string) error {
	if !isPlaneFolder(dir) {
		return fmt.Errorf("remove folder: %q is not a folder of a plane", dir)
	}
	return files.RemoveFolder(dir)
}
