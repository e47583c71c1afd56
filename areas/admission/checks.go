package admission

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"tare/area"
	"tare/internal/kit"
)

// serviceAccount is the token that a pod has.
const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"

// checks is area.Parts.Checks: it looks for the files that give access to a cluster, and reads none.
func checks(_ context.Context, env area.Env) []area.Check {
	getenv := kit.Environment(env.Getenv)
	c := area.Check{
		Group: area.Tools, Name: "kubeconfig", State: area.CheckInfo, Found: "none in KUBECONFIG or ~/.kube/config",
	}
	list, _ := getenv("KUBECONFIG")
	files := filepath.SplitList(list)
	if home, ok := getenv("HOME"); ok && len(files) == 0 {
		files = []string{filepath.Join(home, ".kube", "config")}
	}
	var found []string
	for _, f := range append(files, serviceAccount) {
		if s, err := os.Stat(f); err == nil && !s.IsDir() {
			found = append(found, f)
		}
	}
	if len(found) > 0 {
		c.Found = strings.Join(found, ", ")
	}
	return []area.Check{c}
}
