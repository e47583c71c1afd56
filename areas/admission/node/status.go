package node

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hostIP is the address of all nodes: requests to a kubelet stay on this host.
const hostIP = "127.0.0.1"

// newPod returns what is kept of a pod.
func newPod(o *corev1.Pod, now time.Time) *pod {
	out := &pod{uid: o.UID, seen: now}
	switch {
	case o.DeletionTimestamp != nil && (o.DeletionGracePeriodSeconds == nil || *o.DeletionGracePeriodSeconds > 0):
		out.wants = toEnd
	case o.DeletionTimestamp == nil && (o.Status.Phase == corev1.PodPending || o.Status.Phase == ""):
		out.wants = toRun
		for i := range o.Spec.InitContainers {
			c := &o.Spec.InitContainers[i]
			stays := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
			out.inits = append(out.inits, container{c.Name, c.Image, !stays})
		}
		for i := range o.Spec.Containers {
			c := &o.Spec.Containers[i]
			out.containers = append(out.containers, container{c.Name, c.Image, false})
		}
	}
	return out
}

// brief is what newPod and the store read of a pod.
func brief(o *corev1.Pod) (out corev1.Pod) {
	out.Namespace, out.Name, out.UID, out.Spec.NodeName = o.Namespace, o.Name, o.UID, o.Spec.NodeName
	out.DeletionTimestamp, out.DeletionGracePeriodSeconds = o.DeletionTimestamp, o.DeletionGracePeriodSeconds
	out.Status.Phase = o.Status.Phase
	for _, c := range o.Spec.InitContainers {
		out.Spec.InitContainers = append(out.Spec.InitContainers,
			corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy})
	}
	for _, c := range o.Spec.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return out
}

// running returns the patch that a kubelet sends when all containers have started. Readiness gates count as met, and
// containers never end.
func running(p *pod, address string, now time.Time) ([]byte, error) {
	at := metav1.NewTime(now)
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: &at, HostIP: hostIP, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: t, Status: corev1.ConditionTrue,
			LastTransitionTime: at,
		})
	}
	for _, c := range p.inits {
		status.InitContainerStatuses = append(status.InitContainerStatuses, c.status(at))
	}
	for _, c := range p.containers {
		status.ContainerStatuses = append(status.ContainerStatuses, c.status(at))
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.uid}, "status": status})
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return body, nil
}

// status returns the status of a running container, or of a completed init container.
func (c container) status(at metav1.Time) corev1.ContainerStatus {
	out := corev1.ContainerStatus{Name: c.name, Image: c.image, ImageID: "simulated", Ready: true}
	if c.ends {
		out.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: at, FinishedAt: at}
		return out
	}
	started := true
	out.Started = &started
	out.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
	return out
}

// podIP returns the address of the n-th pod, in 10.0.0.0/8: nothing is sent there.
func podIP(n uint32) string {
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}).String()
}
