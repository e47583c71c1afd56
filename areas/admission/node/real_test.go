package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/areas/plane"
	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// role makes the test binary a simulator, as tare's own binary is one.
const role = "TARE_TEST_NODES"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "" {
		hosttest.Main(m)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := proc.Serve(ctx, os.Stdin, os.Stdout, func(ctx context.Context, raw json.RawMessage,
		ready func(any) error,
	) error {
		var cfg Config
		if err := json.Unmarshal(raw, &cfg); err != nil {
			return err
		}
		return Run(ctx, cfg, func(r Ready) error { return ready(r) })
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// startRealPlane starts a control plane, and skips the test if its binary is not built.
func startRealPlane(t testing.TB, v plane.Version) *plane.Plane {
	t.Helper()
	hosttest.SkipIfShort(t)
	b, ok := plane.Cached(t.Context(), v, plane.Host{Getenv: os.LookupEnv})
	if !ok {
		if os.Getenv(plane.Variable) != "" && v == plane.V136 {
			t.Fatalf("$%s names no binary that works", plane.Variable)
		}
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
	p, err := plane.Start(t.Context(), plane.Config{Binary: b, Dir: t.TempDir(), Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Logf("plane %s ready after %.1f s", v, p.ReadySeconds)
	return p
}

func configOf(p *plane.Plane, nodes int) Config {
	return Config{Server: p.Server(), CA: p.CA, Token: p.AdminToken, Nodes: nodes}
}

// simulate runs a simulator as a child process.
func simulate(t testing.TB, cfg Config) (*proc.Child, Ready) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := t.TempDir() + "/nodes.log"
	c, err := proc.Start(t.Context(), proc.Spec{
		Name: "nodes", Path: self, Config: cfg, Env: append(os.Environ(), role+"=1"), LogFile: log,
		ReadyWithin: 2 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
	})
	var ready Ready
	if err := json.Unmarshal(c.Ready, &ready); err != nil {
		t.Fatal(err)
	}
	return c, ready
}

// retryUntil tries f until it returns no error.
func retryUntil(t testing.TB, within time.Duration, f func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %v", within, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// wantReadyNodes returns an error unless n nodes are Ready and without taints.
func wantReadyNodes(ctx context.Context, c *client, n int) error {
	var list corev1.NodeList
	if err := c.core.Get().Resource("nodes").Do(ctx).Into(&list); err != nil {
		return err
	}
	if len(list.Items) != n {
		return fmt.Errorf("%d nodes, want %d", len(list.Items), n)
	}
	for i := range list.Items {
		o := &list.Items[i]
		if len(o.Spec.Taints) > 0 {
			return fmt.Errorf("node %s is tainted: %v", o.Name, o.Spec.Taints)
		}
		if len(o.Status.Conditions) == 0 || o.Status.Conditions[0].Type != corev1.NodeReady ||
			o.Status.Conditions[0].Status != corev1.ConditionTrue {
			return fmt.Errorf("node %s is not Ready: %v", o.Name, o.Status.Conditions)
		}
	}
	return nil
}

func createPods(t testing.TB, c *client, prefix string, n int) {
	t.Helper()
	for i := range n {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", prefix, i), Namespace: "default",
				Labels: map[string]string{"set": prefix},
			},
			Spec: corev1.PodSpec{
				InitContainers: []corev1.Container{{Name: "first", Image: "example/first"}},
				Containers:     []corev1.Container{{Name: "a", Image: "example/a"}, {Name: "b", Image: "example/b"}},
			},
		}
		retryUntil(t, 30*time.Second, func() error { // the default ServiceAccount may take a moment
			return c.core.Post().Namespace("default").Resource("pods").Body(pod).Do(t.Context()).Error()
		})
	}
}

func listPods(ctx context.Context, c *client, set string) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := c.core.Get().Namespace("default").Resource("pods").Param("labelSelector", "set="+set).Do(ctx).Into(&list)
	return list.Items, err
}

// wantRunningPods returns an error unless n pods run, as a kubelet reports it, each at its own address.
func wantRunningPods(ctx context.Context, c *client, set string, n int) error {
	pods, err := listPods(ctx, c, set)
	if err != nil {
		return err
	}
	if len(pods) != n {
		return fmt.Errorf("%d pods, want %d", len(pods), n)
	}
	addresses := map[string]string{}
	for i := range pods {
		p := &pods[i]
		switch {
		case p.Status.Phase != corev1.PodRunning:
			return fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase)
		case len(p.Status.ContainerStatuses) != 2 || len(p.Status.InitContainerStatuses) != 1:
			return fmt.Errorf("pod %s has statuses %v, %v", p.Name, p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
		case p.Status.InitContainerStatuses[0].State.Terminated == nil:
			return fmt.Errorf("pod %s: the init container has not ended", p.Name)
		case addresses[p.Status.PodIP] != "" || p.Status.PodIP == "":
			return fmt.Errorf("pod %s has the address %q of pod %s", p.Name, p.Status.PodIP, addresses[p.Status.PodIP])
		}
		addresses[p.Status.PodIP] = p.Name
		for _, s := range p.Status.ContainerStatuses {
			if s.State.Running == nil || s.State.Running.StartedAt.IsZero() || !s.Ready {
				return fmt.Errorf("pod %s: container %s does not run: %v", p.Name, s.Name, s.State)
			}
		}
		ready := 0
		for _, one := range p.Status.Conditions {
			if one.Status == corev1.ConditionTrue && !one.LastTransitionTime.IsZero() {
				ready++
			}
		}
		if ready < 4 { // PodScheduled, Initialized, ContainersReady, Ready
			return fmt.Errorf("pod %s has conditions %v", p.Name, p.Status.Conditions)
		}
	}
	return nil
}

func deletePods(t testing.TB, c *client, set string) {
	t.Helper()
	if err := c.core.Delete().Namespace("default").Resource("pods").Param("labelSelector",
		"set="+set).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	retryUntil(t, time.Minute, func() error {
		left, err := listPods(t.Context(), c, set)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d pods are left: %s since %v", len(left), left[0].Name, left[0].DeletionTimestamp)
		}
		return err
	})
}

func TestNodesAreReadyAndPodsRunAndGo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		version plane.Version
		nodes   int
	}{{plane.V136, 10}, {plane.V136, 200}, {plane.V124, 10}} {
		t.Run(fmt.Sprintf("%s with %d", c.version, c.nodes), func(t *testing.T) {
			t.Parallel()
			p := startRealPlane(t, c.version)
			cfg := configOf(p, c.nodes)
			_, ready := simulate(t, cfg)
			t.Logf("%d nodes registered in %.2f s", ready.Nodes, ready.Seconds)
			api, err := dial(cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := wantReadyNodes(t.Context(), api, c.nodes); err != nil { // at once, and not after a while
				t.Error(err)
			}
			createPods(t, api, "some", 50)
			retryUntil(t, time.Minute, func() error { return wantRunningPods(t.Context(), api, "some", 50) })
			deletePods(t, api, "some")
		})
	}
}

func TestNodesSurviveAServerRestart(t *testing.T) {
	t.Parallel()
	p := startRealPlane(t, plane.V136)
	cfg := configOf(p, 20)
	child, _ := simulate(t, cfg)
	api, err := dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	createPods(t, api, "before", 10)
	retryUntil(t, time.Minute, func() error { return wantRunningPods(t.Context(), api, "before", 10) })
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	retryUntil(t, time.Minute, func() error { return wantReadyNodes(t.Context(), api, 20) })
	createPods(t, api, "after", 10)
	retryUntil(t, time.Minute, func() error { return wantRunningPods(t.Context(), api, "after", 10) })
	deletePods(t, api, "before")
	select {
	case <-child.Exited():
		t.Error(child.Wait(t.Context()))
	default:
	}
}

func TestSimulatorRejectsRealNodes(t *testing.T) {
	t.Parallel()
	p := startRealPlane(t, plane.V136)
	cfg := configOf(p, 1)
	api, err := dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	if err := api.core.Post().Resource("nodes").Body(worker).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), cfg, func(Ready) error { return errors.New("it was ready") })
	if err == nil || !contains(err.Error(), "worker-1", "not simulated") {
		t.Errorf("beside a real node: %v", err)
	}
}
