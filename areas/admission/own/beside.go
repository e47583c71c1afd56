package own

import (
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
)

// ofKubernetes are API groups of Kubernetes' own whose objects neither change nor deploy policies. What others do is
// not known: a deployer's may leave policies out, or change them.
var ofKubernetes = []string{
	"", "apps", "autoscaling", "batch", "discovery.k8s.io", "events.k8s.io", "extensions", "networking.k8s.io",
	"scheduling.k8s.io", "storage.k8s.io",
}

// kustomizeGroup is the API group of kustomizations that are files.
const kustomizeGroup = "kustomize.config.k8s.io"

// isHarmless reports whether an object says nothing about policies, their engines or what deploys them, if none of
// them is named in it: a test, a kustomization, which is compared by what it lists and makes, or an object of
// Kubernetes' own but a ConfigMap or a Secret, of which a deployer may take values.
func isHarmless(o *unstructured.Unstructured) bool {
	switch k := o.GroupVersionKind(); {
	case k.Group == "" && (k.Kind == "ConfigMap" || k.Kind == "Secret"):
		return false
	case k.Group == kustomizeGroup:
		return true
	default:
		return slices.Contains(ofKubernetes, k.Group) || slices.Contains(testGroups, k.Group)
	}
}

// isKnown reports whether a file is one of which it is known what it says besides objects: a kustomization, which is
// compared by what it lists and makes, tests of Kyverno's, and what describes policies to people.
func (s source) isKnown() bool {
	described := []string{"kyverno-test.yaml", "artifacthub-pkg.yml", "artifacthub-pkg.yaml"}
	return slices.Contains(slices.Concat(konfig.RecognizedKustomizationFileNames(), described), path.Base(s.name))
}
