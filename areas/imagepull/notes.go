package imagepull

import (
	"fmt"

	"tare/areas/plane"
)

// notes returns what is to be known of this run; what holds for every run is in README.md.
func (s *Spec) notes(b plane.Binary, d disk, cpus []int) []string {
	out := []string{fmt.Sprintf("records lie in folders below %s, on %s; Kubernetes %s was compiled by %s", s.folder(),
		d.kind, b.Kubernetes, b.Go)}
	if len(cpus) == 1 {
		out = append(out, fmt.Sprintf("all arms run on CPU %d, one at a time", cpus[0]))
	}
	return out
}
