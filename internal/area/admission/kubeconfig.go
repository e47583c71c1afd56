package admission

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

// serverURL is the API server that a context of a kubeconfig names; the current one if context is empty.
func serverURL(kubeconfig, context string) (string, error) {
	c, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("read kubeconfig: %w", err)
	}
	if context == "" {
		context = c.CurrentContext
	}
	x := c.Contexts[context]
	if x == nil {
		return "", fmt.Errorf("kubeconfig %s has no context %q", kubeconfig, context)
	}
	cluster := c.Clusters[x.Cluster]
	if cluster == nil {
		return "", fmt.Errorf("kubeconfig %s has no cluster %q", kubeconfig, x.Cluster)
	}
	return cluster.Server, nil
}
