// Package plane runs a Kubernetes control plane on this host: etcd, kube-apiserver and, for nodes, kube-scheduler and
// kube-controller-manager. Each is a child process from one binary, on loopback, with the plane's own certificate
// authority.
package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/proc"
)

// Where etcd keeps its data.
const (
	// Tmpfs keeps data in memory, so that a measurement finds the control plane's own work and not waits for a disk.
	Tmpfs = "tmpfs"
	// NoFsync is Config.Dir without fsync: the fallback of Tmpfs where /dev/shm is too small, as in many containers.
	NoFsync = "disk without fsync"
	// Disk is Config.Dir with an fsync for each transaction, as in production.
	Disk = "disk"
)

const (
	defaultWithin = 2 * time.Minute
	// startTries is how often Start tries again when another process takes one of its ports meanwhile.
	startTries = 5
	// tmpfsNeeds is how much memory etcd's folder must have, in bytes: two segments of its log, 64 MB each, and room for
	// 3,000 pods.
	tmpfsNeeds = 384 << 20
	// mostData bounds etcd's database, in bytes: 5,000 policies and 3,000 pods need a tenth of it.
	mostData = 4 << 30
	// leastData is the least limit of the database however little is free, in bytes: 0 would select etcd's own default.
	leastData = 64 << 20
)

// Config says which control plane to start, and whom to notify of it.
type Config struct {
	Binary Binary
	Dir    string        // folder of the logs, and of etcd's data on disk; it must exist
	Name   string        // suffix of the logs' names, so that planes may share Dir
	Nodes  bool          // with kube-scheduler and kube-controller-manager
	Etcd   string        // Tmpfs (also "") or Disk
	PSP    bool          // with the admission plugin PodSecurityPolicy: version 1.24 only
	CPUs   []int         // the processors of all components; empty: all
	Flags  []string      // further flags of kube-apiserver, "--name=value"
	Within time.Duration // bounds the start; default 2 min
	Log    *slog.Logger  // receives messages for the user; nil: none are written
	Clock  clock.Clock   // default: the machine's

	// For a journal: Born is called for each component before it does anything, Folder with the path of each folder with
	// secrets before it is made, and Gone with the name of a component or the path of a folder that has been removed. Each
	// may be nil, and may be called from several goroutines. An error ends the start.
	Born   func(name string, id proc.ID) error
	Folder func(path string) error
	Gone   func(name string) error
}

// reservedFlags are the flags of kube-apiserver that the plane itself sets.
var reservedFlags = []string{
	"etcd-servers", "bind-address", "secure-port", "cert-dir", "tls-cert-file", "tls-private-key-file", "token-auth-file",
	"authorization-mode",
	"service-account-issuer", "service-account-key-file", "service-account-signing-key-file", "anonymous-auth",
	"authentication-config",
}

func (c Config) withDefaults() (Config, error) {
	if c.Etcd == "" {
		c.Etcd = Tmpfs
	}
	if c.Clock == nil {
		c.Clock = clock.System{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Within <= 0 {
		c.Within = defaultWithin
	}
	switch {
	case c.Etcd != Tmpfs && c.Etcd != Disk:
		return c, fmt.Errorf("etcd on %q is not possible: use %s or %s", c.Etcd, Tmpfs, Disk)
	case c.PSP && c.Binary.Version != V124:
		return c, fmt.Errorf("PodSecurityPolicy needs version %s of the control plane, not %s", V124, c.Binary.Version)
	}
	for _, f := range c.Flags {
		name, _, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		for _, o := range reservedFlags {
			if name == o {
				return c, fmt.Errorf("flag --%s of kube-apiserver is the plane's own", o)
			}
		}
		if !strings.HasPrefix(f, "--") {
			return c, fmt.Errorf("flag %q of kube-apiserver: want --name=value", f)
		}
	}
	var err error
	c.Dir, err = filepath.Abs(c.Dir)
	return c, err
}

// Plane is a running control plane. Its methods may be called from any goroutine.
type Plane struct {
	// CA is the authority's certificate, PEM, by which every component's certificate is verified.
	CA []byte
	// Tokens of the users AdminUser, CallerUser and NodesUser.
	AdminToken, CallerToken, NodesToken string
	// ReadySeconds is how long Start took until all components were ready.
	ReadySeconds float64
	// Store is where etcd actually keeps its data: Tmpfs, Disk or NoFsync.
	Store string

	config  Config
	secrets *secrets
	data    string // etcd's folder
	quota   uint64 // of etcd's database, in bytes
	ports   ports
	client  *http.Client

	turn sync.Mutex // serializes Start, Restart and Close

	mu       sync.Mutex
	children map[string]*proc.Child
	folders  []string // to remove
}

// Start starts a control plane and returns when it is ready: kube-apiserver's /readyz and, with Nodes, the other
// components' /healthz answer 200 with a certificate of the plane's authority. ctx bounds the start only. An error
// names the component that failed, with the last lines of its log; nothing is left running.
func Start(ctx context.Context, c Config) (*Plane, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("start control plane: %w", err)
	}
	for try := 1; ; try++ {
		p, err := start(ctx, c)
		switch {
		case err == nil:
			return p, nil
		case !kit.IsPortTaken(err) || try == startTries || ctx.Err() != nil:
			return nil, fmt.Errorf("start control plane: %w", err)
		}
		c.Log.Warn("a port was taken meanwhile: starting the control plane on others", slog.Int("try", try))
	}
}

func start(ctx context.Context, c Config) (*Plane, error) {
	begin := c.Clock.Now()
	p := &Plane{config: c, children: map[string]*proc.Child{}}
	p.turn.Lock()
	err := p.prepare(ctx)
	if err == nil {
		err = p.startAll(ctx)
	}
	p.turn.Unlock()
	if err != nil {
		atOnce, cancel := context.WithCancel(context.WithoutCancel(ctx))
		cancel()
		return nil, errors.Join(err, p.Close(atOnce))
	}
	p.ReadySeconds = c.Clock.Now().Sub(begin).Seconds()
	return p, nil
}

// prepare makes all that components need before they start.
func (p *Plane) prepare(ctx context.Context) (err error) {
	p.secrets = &secrets{dir: secretFolder()}
	if p.data, err = p.dataFolder(fileSystem); err != nil {
		return err
	}
	if p.ports, err = findPorts(ctx); err != nil {
		return err
	}
	if err := p.recordFolder(p.secrets.dir); err != nil {
		return err
	}
	if err := p.secrets.write(p.config.Clock.Now()); err != nil {
		return err
	}
	if err := p.secrets.kubeconfigs(p.Server()); err != nil {
		return err
	}
	p.CA, p.AdminToken, p.CallerToken, p.NodesToken = p.secrets.ca.pem, p.secrets.admin, p.secrets.caller, p.secrets.nodes
	p.client, err = newClient(p.CA)
	return err
}

// dataFolder chooses where etcd will keep its data, and sets its quota. room returns a file system's type and free
// bytes.
func (p *Plane) dataFolder(room func(path string) (kind int64, free uint64, err error)) (string, error) {
	p.Store = p.config.Etcd
	if p.Store == Tmpfs {
		parent := filepath.Dir(p.secrets.dir)
		kind, free, err := room(parent)
		switch {
		case err != nil:
			return "", err
		case kind == unix.TMPFS_MAGIC && free >= tmpfsNeeds:
			p.quota = quotaOf(free)
			return p.secrets.path(etcdFolder), nil
		}
		p.Store = NoFsync
		p.config.Log.Warn("there is no room in memory for etcd: it keeps its data in the run's folder, without fsync; "+
			"enlarge "+shm+" (docker run --shm-size=1g)", slog.Uint64("free_mib", free>>20),
			slog.Int("needed_mib", tmpfsNeeds>>20))
	}
	parent, err := p.safeParent()
	if err != nil {
		return "", err
	}
	_, free, err := room(parent)
	if err != nil {
		return "", err
	}
	p.quota = quotaOf(free)
	dir := filepath.Join(parent, filepath.Base(p.secrets.dir)+"-etcd")
	return dir, p.recordFolder(dir)
}

// safeParent returns where etcd's folder can be made so that no other user can put another in its place: the run's
// folder, or else, if its data need not be on that disk, the folder for temporary files.
func (p *Plane) safeParent() (string, error) {
	f, err := files.Open(p.config.Dir)
	switch _, unsafe := errors.AsType[*files.NotOursError](err); {
	case err == nil:
		return p.config.Dir, f.Close()
	case !unsafe:
		return "", err
	case p.Store == NoFsync:
		return os.TempDir(), nil
	}
	return "", fmt.Errorf("etcd cannot keep its data in the run's folder: %w; choose another with --results, or leave "+
		"out etcd: disk", err)
}

// quotaOf returns the limit of etcd's database for so many free bytes: it must not fill the host's memory or disk.
// Beyond it, etcd refuses writes.
func quotaOf(free uint64) uint64 { return max(leastData, min(mostData, free/2)) }

// recordFolder records a folder before it is made, so that it is always removed.
func (p *Plane) recordFolder(dir string) error {
	if p.config.Folder != nil {
		if err := p.config.Folder(dir); err != nil {
			return fmt.Errorf("record folder %s: %w", dir, err)
		}
	}
	p.folders = append(p.folders, dir)
	return nil
}

// components lists the components in the order of their dependencies.
func (p *Plane) components() []string {
	if p.config.Nodes {
		return []string{Etcd, APIServer, Scheduler, ControllerManager}
	}
	return []string{Etcd, APIServer}
}

// Server returns the URL of kube-apiserver: "https://127.0.0.1:PORT".
func (p *Plane) Server() string { return url(p.ports.server) }

// Kubeconfig returns the path of the administrator's kubeconfig, which Close removes.
func (p *Plane) Kubeconfig() string { return p.secrets.path(adminFile) }

// CertificateFolder returns the folder with a certificate for servers on 127.0.0.1, tls.crt, and its key, tls.key, of
// the plane's authority. Close removes it.
func (p *Plane) CertificateFolder() string { return p.secrets.dir }

// remove deletes the plane's folders.
func (p *Plane) remove() error {
	var errs []error
	for _, dir := range p.folders {
		if err := files.RemoveAt(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove folder: %w", err))
			continue
		}
		errs = append(errs, p.gone(dir))
	}
	p.folders = nil
	return errors.Join(errs...)
}

func (p *Plane) gone(name string) error {
	if p.config.Gone == nil {
		return nil
	}
	return p.config.Gone(name)
}
