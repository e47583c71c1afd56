package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tare/internal/clock"
)

func sorted(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return out
}

func bound(name, uid string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(uid)},
		Spec:       corev1.PodSpec{NodeName: "tare-node-00000", Containers: []corev1.Container{{Name: "a", Image: "i"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if change != nil {
		change(p)
	}
	return p
}

func deleted(p *corev1.Pod) {
	grace := int64(30)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Unix(1, 0)}, &grace
}

// startDriver starts the workers of a fleet of one node, and ends them with the test.
func startDriver(t *testing.T, a *api) *pods {
	t.Helper()
	p := a.fleet(1, clock.System{}).pods
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { p.work(ctx) })
	t.Cleanup(func() { cancel(); all.Wait() })
	return p
}

func TestPodsAreDriven(t *testing.T) {
	a := newAPI(t)
	p := startDriver(t, a)
	zero := int64(0)
	for _, one := range []*corev1.Pod{
		bound("runs", "u1", nil),
		bound("ends", "u2", deleted),
		bound("elsewhere", "u3", func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" }),
		bound("running", "u4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
		// a finalizer holds it
		bound("confirmed", "u5", func(p *corev1.Pod) { deleted(p); p.DeletionGracePeriodSeconds = &zero }),
		bound("failed", "u6", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
	} {
		if err := p.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "two requests", func() bool { return len(a.all()) == 2 })
	time.Sleep(20 * time.Millisecond)
	want := []string{"DELETE /api/v1/namespaces/ns/pods/ends", "PATCH /api/v1/namespaces/ns/pods/runs/status"}
	for _, q := range a.all() {
		if q.method == http.MethodDelete {
			o, _, err := a.decode.Decode([]byte(q.body), nil, nil)
			d, ok := o.(*metav1.DeleteOptions)
			if err != nil || !ok || *d.GracePeriodSeconds != 0 || *d.Preconditions.UID != "u2" {
				t.Errorf("deleted with %+v: %v", o, err)
			}
		}
	}
	if d := cmp.Diff(want, a.newRequests()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := p.Resync(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	if got := a.newRequests(); len(got) != 0 {
		t.Errorf("what is done was done again: %v", got)
	}
}

// TestFailedUpdatesAreRetried until they succeed; a pod that is gone is left alone.
func TestFailedUpdatesAreRetried(t *testing.T) {
	a := newAPI(t)
	p := startDriver(t, a)
	left := map[string]int{"busy": 3, "conflict": 2, "gone": 1000}
	a.refuseWhere(func(_, path string) int {
		for name, code := range map[string]int{"busy": 500, "conflict": 409, "gone": 404} {
			if strings.Contains(path, name) && left[name] > 0 {
				left[name]--
				return code
			}
		}
		return 0
	})
	for _, name := range []string{"busy", "conflict", "gone"} {
		if err := p.Add(bound(name, "u-"+name, nil)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all have settled", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, one := range p.known {
			if one.wants != nothing {
				return false
			}
		}
		return true
	})
	if got := [3]int{
		a.count(http.MethodPatch, "busy/status"), a.count(http.MethodPatch, "conflict/status"),
		a.count(http.MethodPatch, "gone/status"),
	}; got != [3]int{4, 3, 1} {
		t.Errorf("tries %v, want 4, 3 and 1", got)
	}
}

// TestResyncFindsLostPods: the resync reminds a worker of a pod that it lost.
func TestResyncFindsLostPods(t *testing.T) {
	a := newAPI(t)
	p := startDriver(t, a)
	key := types.NamespacedName{Namespace: "ns", Name: "lost"}
	p.mu.Lock()
	p.known[key] = newPod(bound("lost", "u", nil), time.Now()) // known, and in no queue
	p.mu.Unlock()
	if err := p.Resync(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it runs", func() bool { return a.count(http.MethodPatch, "lost/status") == 1 })
}

func TestListsReplaceWhatIsKnown(t *testing.T) {
	a := newAPI(t)
	p := startDriver(t, a)
	for i := range 10 {
		if err := p.Add(bound(fmt.Sprint("p", i), fmt.Sprint(i),
			func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Replace([]any{bound("p3", "3", deleted), bound("new", "n", nil)}, "9"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.listed:
	default:
		t.Error("a list came, and nobody was told")
	}
	eventually(t, "both are driven", func() bool {
		return a.count(http.MethodDelete, "/p3") == 1 && a.count(http.MethodPatch, "/new/status") == 1
	})
	if size(p) != 2 {
		t.Errorf("%d pods are kept, want 2", size(p))
	}
	for _, name := range []string{"p3", "new"} {
		if err := p.Delete(bound(name, "", nil)); err != nil {
			t.Fatal(err)
		}
	}
	if size(p) != 0 {
		t.Errorf("%d pods are kept that have gone", size(p))
	}
	for _, f := range []func(any) error{p.Add, p.Update, p.Delete, func(o any) error { return p.Replace([]any{o}, "") }} {
		if f(&corev1.Node{}) == nil {
			t.Error("a node was taken for a pod")
		}
	}
}

// TestListsAreBounded: a list of pods keeps little of them, nothing of others, and ends.
func TestListsAreBounded(t *testing.T) {
	a := newAPI(t)
	p := a.fleet(1, clock.System{}).pods
	always := corev1.ContainerRestartPolicyAlways
	one := bound("one", "u", func(o *corev1.Pod) {
		deleted(o)
		o.Labels, o.Spec.Containers[0].Command = map[string]string{"a": "b"}, []string{"long"}
		o.Spec.InitContainers = []corev1.Container{{Name: "i", Image: "j", RestartPolicy: &always, Command: []string{"long"}}}
	})
	a.bound = []corev1.Pod{*one, *bound("other", "v", func(o *corev1.Pod) { o.Spec.NodeName = "other" })}
	got, err := p.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	one.Labels, one.Spec.Containers[0].Command, one.Spec.InitContainers[0].Command = nil, nil, nil
	items := got.(*corev1.PodList).Items //nolint:forcetypeassert // as in the reflector
	if d := cmp.Diff([]corev1.Pod{*one}, items); d != "" || got.(*corev1.PodList).ResourceVersion != "1" {
		t.Errorf("pods (-want +got):\n%s", d)
	}
	a.endless = true
	if _, err := p.list(t.Context()); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("got %v, want that the list does not end", err)
	}
}

// TestLatencyDelaysRunning: a pod runs that long after its node saw it, however many events and resyncs come in
// between.
func TestLatencyDelaysRunning(t *testing.T) {
	a := newAPI(t)
	f := a.fleet(1, clock.System{})
	const latency = 200 * time.Millisecond
	f.pods.latency = latency
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { f.pods.work(ctx) })
	defer func() { cancel(); all.Wait() }()
	begin := time.Now()
	for range 5 {
		if err := f.pods.Add(bound("slow", "u", nil)); err != nil {
			t.Fatal(err)
		}
		if err := f.pods.Resync(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	eventually(t, "it runs", func() bool { return a.count(http.MethodPatch, "slow/status") > 0 })
	if took := time.Since(begin); took < latency {
		t.Errorf("it ran after %v, want %v at least", took, latency)
	}
}

func TestRunningStatus(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	now := time.Unix(1700000000, 5e8)
	pod := newPod(bound("p", "u1", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{
			{Name: "once", Image: "i"},
			{Name: "side", Image: "s", RestartPolicy: &always},
		}
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "b", Image: "j"})
	}), now)
	body, err := running(pod, "10.0.0.1", now)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Metadata struct{ UID string }
		Status   corev1.PodStatus
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	s := got.Status
	if got.Metadata.UID != "u1" || s.Phase != corev1.PodRunning || s.PodIP != "10.0.0.1" ||
		s.StartTime.Unix() != now.Unix() {
		t.Errorf("got status %s, want Running at 10.0.0.1 from now", body)
	}
	if len(s.InitContainerStatuses) != 2 || s.InitContainerStatuses[0].State.Terminated == nil ||
		s.InitContainerStatuses[1].State.Running == nil {
		t.Errorf("init containers: %+v", s.InitContainerStatuses)
	}
	if len(s.ContainerStatuses) != 2 || s.ContainerStatuses[1].Name != "b" ||
		s.ContainerStatuses[1].State.Running.StartedAt.Unix() != now.Unix() || !*s.ContainerStatuses[1].Started {
		t.Errorf("containers: %+v", s.ContainerStatuses)
	}
	if len(s.Conditions) != 3 {
		t.Errorf("conditions: %+v", s.Conditions)
	}
}

func TestAddressesOfPods(t *testing.T) {
	seen := map[string]bool{}
	for n := uint32(1); n < 70000; n++ {
		ip := podIP(n)
		if seen[ip] || !strings.HasPrefix(ip, "10.") {
			t.Fatalf("pod %d has address %s", n, ip)
		}
		seen[ip] = true
	}
}

func size(p *pods) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known)
}

// all are the requests so far.
func (a *api) all() []seenRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.asked)
}
