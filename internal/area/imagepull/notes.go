package imagepull

import (
	"fmt"

	"tare/internal/design"
	"tare/internal/plane"
)

// notes returns what every report must say.
func (s *Spec) notes(b plane.Binary, d disk, cpus []int, treatments []design.Treatment) []string {
	out := []string{
		fmt.Sprintf("pull manager of Kubernetes %s, compiled by %s, driven in a process of its own: no kubelet, no "+
			"registry and no network are part of what is measured", b.Kubernetes, b.Go),
		fmt.Sprintf("records lie in folders below %s, on %s: what reading, writing and counting files costs belongs to "+
			"that file system", s.folder(), d.kind),
		"images, secrets and records are invented; how many of the checks found a record (hits), and how many were " +
			"answered from memory (cache-hits), is counted in each batch",
		"allocations are counted by Go's runtime around each batch, outside of what is timed",
	}
	if len(cpus) == 1 {
		out = append(out, fmt.Sprintf("all arms run on CPU %d, one at a time; contention between CPUs is not measured",
			cpus[0]))
	}
	if n := s.most(treatments); n > 1 {
		out = append(out, fmt.Sprintf("with several calls at a time (up to %d, on %s) wall is what each call took, "+
			"waiting for locks and for processors included; cpu is that of the whole process", n,
			plural(len(cpus), "processor")))
	}
	if s.any(treatments, func(p *plan) bool { return p.accessor == disabled }) {
		out = append(out, "accessor disabled is upstream's NoopImagePullManager, which a kubelet has with the feature "+
			"gate KubeletEnsureSecretPulledImages off")
	}
	return out
}
