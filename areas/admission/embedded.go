package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/proc"
)

// changeFolder is the kind of changes that are folders.
const changeFolder = "folder"

// folderPrefix begins the names of the folders of control planes.
const folderPrefix = "tare-plane-"

// A control is an embedded control plane and its journal.
type control struct {
	*plane.Plane
	binary plane.Binary
	notes  *processJournal
	nodes  *kit.Process // the simulated nodes; nil: none
	// nodesNote describes the nodes in one line.
	nodesNote string
}

// host returns what finding a binary needs: the path in the file, and a function that announces a build.
func host(p *plan, env area.Env) plane.Host {
	h := plane.Host{
		Log: env.Log, Getenv: kit.Environment(env.Getenv), Clock: env.Clock,
		Tell: func(line string) { env.Log.Warn("prepare the control plane", slog.String("step", line)) },
	}
	if e := p.spec.Embedded; e != nil {
		h.Path = e.Binary
		if p.version == plane.V124 {
			h.Path = e.BinaryPSP
		}
	}
	return h
}

// startControl starts the control plane of p. Each process and each folder is journaled before it exists.
func startControl(ctx context.Context, p *plan, env area.Env, j area.Journal, index int) (*control, error) {
	binary, err := plane.Find(ctx, p.version, host(p, env))
	if err != nil {
		return nil, findFailed(p, err)
	}
	dir := env.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	c := &control{binary: binary, notes: &processJournal{journal: j, prefix: fmt.Sprintf("plane-%d", index)}}
	c.Plane, err = plane.Start(ctx, plane.Config{
		Binary: binary, Dir: dir, Name: c.notes.prefix, Nodes: p.nodes > 0, Etcd: p.etcd, PSP: p.psp(), CPUs: env.CPUs,
		Flags: p.flags,
		Log:   env.Log, Clock: env.Clock, Born: c.notes.born, Folder: c.notes.folder, Gone: c.notes.gone,
	})
	if err != nil {
		return nil, err
	}
	if p.nodes > 0 {
		if err := c.startNodes(ctx, env, j, p.nodes, index); err != nil {
			return nil, errors.Join(err, c.close(context.WithoutCancel(ctx)))
		}
	}
	env.Log.Debug("control plane is ready", slog.String("version", binary.Kubernetes),
		slog.Float64("seconds", c.ReadySeconds))
	return c, nil
}

func findFailed(p *plan, err error) error {
	return fmt.Errorf("find control plane %s: %w", p.version, err)
}

// close ends the nodes, and then the control plane with all its objects.
func (c *control) close(ctx context.Context) error {
	return errors.Join(c.nodes.Stop(ctx), c.Close(ctx))
}

const (
	// nodesServer is the name of the simulated nodes as a child of this binary.
	nodesServer = "nodes"
	// nodesWithin bounds their start: 5000 nodes register one after another.
	nodesWithin = 3 * time.Minute
)

// A processJournal journals the processes and folders of one control plane.
type processJournal struct {
	journal area.Journal
	prefix  string // of the changes' names

	mu     sync.Mutex
	count  int
	active map[string]area.Change // by the control plane's names
}

func (n *processJournal) born(name string, id proc.ID) error {
	return n.intend(name, func(unique string) area.Change { return kit.ProcessChange(areaName, unique, id) })
}

func (n *processJournal) folder(path string) error {
	return n.intend(path, func(unique string) area.Change {
		return area.Change{Area: areaName, Kind: changeFolder, ID: unique, Data: map[string]string{"path": path}}
	})
}

func (n *processJournal) intend(name string, change func(unique string) area.Change) error {
	n.mu.Lock()
	n.count++
	c := change(fmt.Sprintf("%s-%d-%s", n.prefix, n.count, filepath.Base(name)))
	n.mu.Unlock()
	if err := n.journal.Intend(c); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.active == nil {
		n.active = map[string]area.Change{}
	}
	n.active[name] = c
	return nil
}

func (n *processJournal) gone(name string) error {
	n.mu.Lock()
	c, ok := n.active[name]
	delete(n.active, name)
	n.mu.Unlock()
	if !ok {
		return nil
	}
	return n.journal.Undone(c)
}

// removeFolder removes a folder of a control plane. It succeeds if the folder does not exist, and refuses other
// folders.
func removeFolder(c area.Change) error {
	path := c.Data["path"]
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !strings.Contains(filepath.Base(path), folderPrefix) {
		return fmt.Errorf("%q is no folder of a control plane", path)
	}
	return files.RemoveAt(path)
}
