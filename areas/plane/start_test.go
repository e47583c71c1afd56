package plane

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// A diary is what a journal would know.
type diary struct {
	mu    sync.Mutex
	open  map[string]proc.ID // by name or path, until it is gone
	names []string           // all that were ever opened
	fail  string             // the name at which an error is returned
}

var errDiary = errors.New("the journal is full")

func (d *diary) born(name string, id proc.ID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[string]proc.ID{}
	}
	d.open[name] = id
	d.names = append(d.names, name)
	if name == d.fail {
		return errDiary
	}
	return nil
}

func (d *diary) folder(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.New("the folder is there before anybody was told")
	}
	return d.born(path, proc.ID{})
}

func (d *diary) gone(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.open[name]; !ok {
		return errors.New(name + " is gone, and was never there")
	}
	delete(d.open, name)
	return nil
}

// nothingLeft fails when something that the diary knows of is still there.
func (d *diary) nothingLeft(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.open {
		t.Errorf("%s was never said to be gone", name)
	}
	for _, name := range d.names {
		if !filepath.IsAbs(name) {
			continue
		}
		if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("folder %s is left: %v", name, err)
		}
	}
}

// config is one that leaves its traces in d.
func (d *diary) config(t *testing.T, b Binary) Config {
	t.Helper()
	return Config{
		Binary: b, Dir: t.TempDir(), Name: "x", Within: time.Minute, Born: d.born,
		Folder: d.folder, Gone: d.gone,
	}
}

func begin(t *testing.T, c Config) *Plane {
	t.Helper()
	p, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(t, p) })
	return p
}

func end(t *testing.T, p *Plane) {
	t.Helper()
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestStartAndClose(t *testing.T) {
	for _, shape := range []struct {
		name       string
		nodes      bool
		etcd       string
		components []string
	}{
		{"small", false, "", []string{Etcd, APIServer}},
		{"with nodes, on disk", true, Disk, []string{Etcd, APIServer, Scheduler, ControllerManager}},
	} {
		t.Run(shape.name, func(t *testing.T) {
			d := &diary{}
			c := d.config(t, fakeBinary(t, "well"))
			c.Nodes, c.Etcd = shape.nodes, shape.etcd
			p := begin(t, c)
			var names []string
			for _, proc := range p.Processes() {
				names = append(names, proc.Name)
				if d.open[proc.Name] != proc.ID {
					t.Errorf("%s is %v, the journal has %v", proc.Name, proc.ID, d.open[proc.Name])
				}
			}
			if !slices.Equal(names, shape.components) {
				t.Errorf("components %v, want %v", names, shape.components)
			}
			if err := p.Failed(); err != nil || p.ReadySeconds <= 0 {
				t.Errorf("ready after %v s, failed: %v", p.ReadySeconds, err)
			}
			checkProbes(t, p, shape.components)
			checkSecrets(t, p)
			processes := p.Processes()
			end(t, p)
			end(t, p) // again
			d.nothingLeft(t)
			for _, proc := range processes {
				if proc.Alive() {
					t.Errorf("%s still runs", proc.Name)
				}
			}
			if len(p.Processes()) != 0 || p.Failed() != nil {
				t.Errorf("closed, but %v, %v", p.Processes(), p.Failed())
			}
			if err := p.Restart(t.Context()); err == nil {
				t.Error("a closed plane was restarted")
			}
		})
	}
}

func checkProbes(t *testing.T, p *Plane, components []string) {
	t.Helper()
	var subjects []string
	for _, pr := range p.Probes() {
		subjects = append(subjects, pr.Subject())
		samples, err := pr.Read(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, q := range []string{probe.CPU.Name, probe.RSS.Name} {
			if !slices.ContainsFunc(samples, func(s metric.Sample) bool {
				return s.Metric == q && s.Value > 0 &&
					s.Subject == pr.Subject()
			}) {
				t.Errorf("%s: no %s in %v", pr.Subject(), q, samples)
			}
		}
	}
	if !slices.Equal(subjects, components) {
		t.Errorf("probes of %v, want %v", subjects, components)
	}
}

// checkSecrets looks at what others could read.
func checkSecrets(t *testing.T, p *Plane) {
	t.Helper()
	dir := filepath.Dir(p.Kubeconfig())
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder of secrets: %v, %v", info, err)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for _, proc := range p.Processes() {
		for _, of := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(proc.PID), of))
			if err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{p.AdminToken, p.CallerToken, p.NodesToken} {
				if len(secret) < 20 || strings.Contains(string(text), secret) {
					t.Errorf("%s of %s gives a token away, or there is none", of, proc.Name)
				}
			}
		}
	}
}

// TestDeadlineKeepsTheLastAnswer: what a component answered is said, though the deadline came during a later request.
func TestDeadlineKeepsTheLastAnswer(t *testing.T) {
	p := &Plane{config: Config{Clock: clock.System{}}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	asked := 0
	err := p.await(ctx, APIServer, func(ctx context.Context) error {
		if asked++; asked == 1 {
			return errUnhealthy
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, errUnhealthy) || asked != 2 {
		t.Errorf("after %d requests: %v, want %v", asked, err, errUnhealthy)
	}
}

// TestFailedStart starts binaries with something wrong, and wants to be told what, and nothing left.
func TestFailedStart(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, c := range []struct {
		mode   string
		nodes  bool
		within time.Duration
		want   []string
	}{
		{"dies", false, time.Minute, []string{
			APIServer, "--useless: it is of no use", "exit status 3",
			"kube-apiserver-x.log",
		}},
		{"garbage", false, time.Minute, []string{`got "I am no control plane`}},
		{"hangs", true, 2 * time.Second, []string{
			APIServer, "not ready within 2s", "500",
			"not yet: poststarthook/rbac/bootstrap-roles", "kube-apiserver-x.log",
		}},
		{"always-taken", false, time.Minute, []string{Etcd, "address already in use"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			d := &diary{}
			config := d.config(t, fakeBinary(t, c.mode))
			config.Nodes, config.Within = c.nodes, c.within
			p, err := Start(t.Context(), config)
			if err == nil {
				end(t, p)
				t.Fatal("it started")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			d.nothingLeft(t)
			if c.mode != "always-taken" {
				return
			}
			runs, err := os.ReadFile(filepath.Join(filepath.Dir(config.Binary.Path), "runs"))
			if err != nil || len(runs) != startTries {
				t.Errorf("%d tries (%v), want %d", len(runs), err, startTries)
			}
		})
	}
}

func TestPortTakenMeanwhile(t *testing.T) {
	d := &diary{}
	p := begin(t, d.config(t, fakeBinary(t, "taken")))
	if err := p.checkHealth(t.Context(), p.Server()+"/readyz"); err != nil {
		t.Error(err)
	}
	end(t, p)
	d.nothingLeft(t)
}

func TestJournalFails(t *testing.T) {
	for _, at := range []string{Etcd, APIServer, ControllerManager} {
		d := &diary{fail: at}
		c := d.config(t, fakeBinary(t, "well"))
		c.Nodes = true
		p, err := Start(t.Context(), c)
		if err == nil {
			end(t, p)
		}
		if !errors.Is(err, errDiary) {
			t.Errorf("%s: error %v, want the journal's", at, err)
		}
		d.nothingLeft(t)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	d := &diary{}
	c := d.config(t, fakeBinary(t, "hangs"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	born := c.Born
	c.Born = func(name string, id proc.ID) error {
		if name == APIServer {
			time.AfterFunc(200*time.Millisecond, cancel)
		}
		return born(name, id)
	}
	p, err := Start(ctx, c)
	if err == nil {
		end(t, p)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	d.nothingLeft(t)
}

func TestRestart(t *testing.T) {
	d := &diary{}
	c := d.config(t, fakeBinary(t, "dies-later"))
	c.Nodes = true
	p := begin(t, c)
	server, admin, ca := p.Server(), p.AdminToken, string(p.CA)
	before := p.Processes()
	mark := filepath.Join(filepath.Dir(c.Binary.Path), "die")
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-p.children[APIServer].Exited()
	err := p.Failed()
	if err == nil || !strings.Contains(err.Error(), APIServer) || !strings.Contains(err.Error(), "by itself") {
		t.Errorf("failed: %v, want that the server ended by itself", err)
	}
	if _, err := p.Probes()[1].Read(t.Context()); !errors.Is(err, probe.ErrGone) {
		t.Errorf("a probe of what is dead says %v", err)
	}
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Server() != server || p.AdminToken != admin || string(p.CA) != ca || p.Failed() != nil {
		t.Error("it is not the same plane that was restarted")
	}
	checkProbes(t, p, []string{Etcd, APIServer, Scheduler, ControllerManager})
	for i, now := range p.Processes() {
		if now.ID == before[i].ID {
			t.Errorf("%s was not restarted", now.Name)
		}
	}
	end(t, p)
	d.nothingLeft(t)
}

// TestDeafComponent closes a plane of which one component does not heed SIGTERM, and one with no time left at all.
func TestDeafComponent(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for _, hurry := range []bool{false, true} {
		d := &diary{}
		c := d.config(t, fakeBinary(t, "deaf"))
		c.Nodes = true
		p := begin(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		if hurry {
			cancel()
		}
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		d.nothingLeft(t)
	}
}

// holdUntilKilled holds a plane and says on standard output, once it is ready, which processes it has.
func holdUntilKilled(binary string) error {
	dir, err := os.MkdirTemp("", "held")
	if err != nil {
		return err
	}
	p, err := Start(context.Background(), Config{Binary: Binary{Path: binary, Version: V136}, Dir: dir, Nodes: true})
	if err != nil {
		return err
	}
	self, err := proc.StartTicks(os.Getpid())
	if err != nil {
		return err
	}
	k := Kept{
		Name: "held", Holder: proc.ID{PID: os.Getpid(), StartTicks: self}, Logs: dir, ReadySeconds: p.ReadySeconds,
		Processes: p.Processes(),
		Folders:   []string{filepath.Dir(p.Kubeconfig())},
	}
	if err := (KeptFolder{Dir: dir}).Put(k); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString(dir + "\n"); err != nil {
		return err
	}
	select {}
}

// TestKilledHolder kills the process that holds a plane: the components end with it, and what remains on disk can be
// cleared by another.
func TestKilledHolder(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "hold", fakeBinary(t, "deaf").Path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	line := make([]byte, 4096)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err, cmd.Wait())
	}
	dir := strings.TrimSpace(string(line[:n]))
	defer os.RemoveAll(dir) //nolint:errcheck // in the folder for temporary files
	k, ok, err := KeptFolder{Dir: dir}.Get("held")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if k.State() != Running || len(k.Processes) != 4 {
		t.Fatalf("%s with %v", k.State(), k.Processes)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if k.State() != Lost {
		t.Errorf("state %s, want %s", k.State(), Lost)
	}
	for _, c := range k.Processes {
		wait(t, c.Name+" to end with its holder", func() bool { return !c.Alive() })
	}
	if _, err := os.Stat(k.Folders[0]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := k.End(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(k.Folders[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("folder %s is left: %v", k.Folders[0], err)
	}
}

// wait waits generously.
func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(until) {
			t.Fatalf("waited in vain for %s", what)
		}
		if err := (clock.System{}).Sleep(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedConfigs(t *testing.T) {
	b := Binary{Path: "/nowhere", Version: V136}
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{Binary: b, Etcd: "floppy"}, `etcd on "floppy"`},
		{Config{Binary: b, PSP: true}, "PodSecurityPolicy needs version 1.24"},
		{Config{Binary: b, Flags: []string{"--secure-port=1"}}, "--secure-port of kube-apiserver is the plane's own"},
		{
			Config{Binary: b, Flags: []string{"--anonymous-auth=true"}},
			"--anonymous-auth of kube-apiserver is the plane's own",
		},
		{Config{Binary: b, Flags: []string{"v=3"}}, `flag "v=3"`},
		{Config{Binary: b, Dir: "/nowhere/at/all"}, "/nowhere/at/all"},
	} {
		p, err := Start(t.Context(), c.config)
		if err == nil {
			end(t, p)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestDataFolder looks where etcd goes when there is little memory, or none that one can write to.
func TestDataFolder(t *testing.T) {
	const tmpfs, ext4 = unix.TMPFS_MAGIC, unix.EXT4_SUPER_MAGIC
	for _, c := range []struct {
		etcd  string
		kind  int64
		free  uint64
		store string
		quota string // bytes
	}{
		{Tmpfs, tmpfs, 1 << 30, Tmpfs, "536870912"},
		{Tmpfs, tmpfs, 64 << 20, NoFsync, "67108864"},
		{Tmpfs, ext4, 1 << 40, NoFsync, "4294967296"},
		{Disk, tmpfs, 1 << 30, Disk, "536870912"},
	} {
		d := &diary{}
		config, err := d.config(t, Binary{Version: V136}).withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		config.Etcd = c.etcd
		p := &Plane{config: config, secrets: &secrets{dir: "/dev/shm/tare-plane-X"}}
		got, err := p.dataFolder(func(string) (int64, uint64, error) { return c.kind, c.free, nil })
		want := filepath.Join(config.Dir, "tare-plane-X-etcd")
		if c.store == Tmpfs {
			want = "/dev/shm/tare-plane-X/etcd"
		}
		if err != nil || got != want || p.Store != c.store || (len(d.names) == 1) != (c.store != Tmpfs) {
			t.Errorf("%s on %x with %d bytes free: %s in %s, noted %v: %v", c.etcd, c.kind, c.free, p.Store, got, d.names, err)
		}
		p.data = got
		if fsync := !slices.Contains(p.arguments(Etcd), "--unsafe-no-fsync=true"); fsync != (c.store == Disk) {
			t.Errorf("%s: fsync %v", c.store, fsync)
		}
		if !slices.Contains(p.arguments(Etcd), "--quota-backend-bytes="+c.quota) {
			t.Errorf("%s with %d bytes free: no quota of %s bytes in %q", c.etcd, c.free, c.quota, p.arguments(Etcd))
		}
	}
}
