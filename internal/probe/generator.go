package probe

import (
	"io/fs"
	"path"
)

// Generator reads what limits this process.
type Generator struct {
	Root fs.FS // nil: this machine
}

// Throttled returns for how long CPU quotas have throttled this process's control group and its ancestors, in seconds
// summed over processors. It is 0 where there is no quota.
func (g Generator) Throttled() float64 {
	root := rootFS(g.Root)
	sum := 0.0
	for _, own := range ownGroups(root) {
		for dir := own; dir != "sys/fs/cgroup" && dir != "."; dir = path.Dir(dir) {
			stat := parseKeyed(readText(root, dir+"/cpu.stat"))
			sum += stat["throttled_usec"]*1e-6 + stat["throttled_time"]*1e-9
		}
	}
	return sum
}
