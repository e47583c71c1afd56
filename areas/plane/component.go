package plane

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"tare/internal/kit"
	"tare/internal/proc"
)

// Names of the components: the subjects of their probes, and the binary's own names for them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	Scheduler         = "kube-scheduler"
	ControllerManager = "kube-controller-manager"
)

const (
	// spawnWithin bounds the time until a component has read its configuration: the binary is 124 MB, and the host may be
	// busy.
	spawnWithin = 30 * time.Second
	// grace is how long etcd and the server may take to end: they finish requests and release what they hold.
	grace = 15 * time.Second
	// clientGrace is shorter: the other two have no state, and those of 1.24 sometimes ignore SIGTERM.
	clientGrace = 2 * time.Second
	// clientRate is how many requests a second the scheduler and the controller-manager may send to the server. With their
	// defaults (50 and 20) a measurement would find those limits instead of the server's.
	clientRate = 5000
)

// socket is where etcd listens: a file in the folder of secrets, in which all components run. etcd asks its clients for
// no credentials.
const socket = "unix://etcd.sock"

// ports are the loopback ports of the other components.
type ports struct{ server, scheduler, controller uint16 }

// of returns the port of a component; 0: it has none.
func (p ports) of(component string) uint16 {
	switch component {
	case APIServer:
		return p.server
	case Scheduler:
		return p.scheduler
	case ControllerManager:
		return p.controller
	}
	return 0
}

// findPorts finds all of them at once, so that they differ. Until a component listens on its port, another process may.
func findPorts(ctx context.Context) (ports, error) {
	p, err := kit.FreePorts(ctx, 3)
	if err != nil {
		return ports{}, err
	}
	return ports{server: p[0], scheduler: p[1], controller: p[2]}, nil
}

// url returns the address of a component on loopback.
func url(port uint16) string {
	return "https://127.0.0.1:" + strconv.Itoa(int(port))
}

// arguments returns a component's flags. What is measured keeps its defaults, except for what needs a network or
// containers.
func (p *Plane) arguments(component string) []string {
	switch component {
	case Etcd:
		return []string{
			"--data-dir=" + p.data, "--listen-client-urls=" + socket, "--quota-backend-bytes=" + strconv.FormatUint(p.quota, 10),
			"--unsafe-no-fsync=" + strconv.FormatBool(p.config.Etcd == Tmpfs),
		}
	case APIServer:
		return p.serverArguments()
	case Scheduler:
		return p.clientArguments(p.ports.scheduler, schedulerFile)
	default:
		return append(p.clientArguments(p.ports.controller, controllerFile),
			"--service-account-private-key-file="+p.secrets.path(accountKeyFile), "--root-ca-file="+p.secrets.path(caFile),
			"--use-service-account-credentials=true")
	}
}

func (p *Plane) serverArguments() []string {
	s := p.secrets
	args := append(p.listening(p.ports.server),
		"--etcd-servers="+socket,
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.0.0.0/16",
		"--token-auth-file="+s.path(tokenFile), "--anonymous-auth=false", "--authorization-mode=Node,RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+s.path(accountPublicFile),
		"--service-account-signing-key-file="+s.path(accountKeyFile),
		"--egress-selector-config-file="+s.path(egressFile), "--enable-logs-handler=false", // which shows this host's logs
		"--allow-privileged=true", // policies are to refuse privileged pods, not the server's validation
	)
	if p.config.PSP {
		args = append(args, "--enable-admission-plugins=PodSecurityPolicy")
	}
	return append(args, p.config.Flags...)
}

// clientArguments returns the flags that the scheduler and the controller-manager share.
func (p *Plane) clientArguments(port uint16, kubeconfig string) []string {
	file := p.secrets.path(kubeconfig)
	return append(p.listening(port),
		"--kubeconfig="+file, "--authentication-kubeconfig="+file, "--authorization-kubeconfig="+file,
		"--authentication-skip-lookup=true",
		"--leader-elect=false", "--kube-api-qps="+strconv.Itoa(clientRate), "--kube-api-burst="+strconv.Itoa(clientRate))
}

func (p *Plane) listening(port uint16) []string {
	return []string{
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(int(port)), "--cert-dir=" + p.secrets.dir,
		"--tls-cert-file=" + p.secrets.path(certFile), "--tls-private-key-file=" + p.secrets.path(keyFile),
	}
}

// LogFile returns the path of a component's log: "kube-apiserver-NAME.log" in Config.Dir.
func (p *Plane) LogFile(component string) string {
	name := component
	if p.config.Name != "" {
		name += "-" + p.config.Name
	}
	return filepath.Join(p.config.Dir, name+".log")
}

// spawn starts components concurrently, and keeps those that started even if others failed.
func (p *Plane) spawn(ctx context.Context, components ...string) error {
	children, errs := make([]*proc.Child, len(components)), make([]error, len(components))
	var wg sync.WaitGroup
	for i, name := range components {
		wg.Go(func() { children[i], errs[i] = p.spawnOne(ctx, name) })
	}
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	var first error
	for i, c := range children {
		if c != nil {
			p.children[components[i]] = c
		}
		if first == nil {
			first = errs[i]
		}
	}
	return first
}

func (p *Plane) spawnOne(ctx context.Context, name string) (*proc.Child, error) {
	born, within := false, grace
	if name == Scheduler || name == ControllerManager {
		within = clientGrace
	}
	c, err := proc.Start(ctx, proc.Spec{
		Name: name, Path: p.config.Binary.Path, Args: []string{name}, Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Dir:     p.secrets.dir,
		Config:  map[string][]string{"args": p.arguments(name)},
		LogFile: p.LogFile(name), ReadyWithin: spawnWithin, Grace: within, CPUs: p.config.CPUs,
		Born: func(id proc.ID) error {
			if p.config.Born == nil {
				return nil
			}
			born = true
			return p.config.Born(name, id)
		},
	})
	if err != nil && born && p.config.Gone != nil { // proc.Start has ended the process
		if gone := p.config.Gone(name); gone != nil {
			return nil, fmt.Errorf("%w; recording its end in the journal failed, too: %w", err, gone)
		}
	}
	return c, err
}
