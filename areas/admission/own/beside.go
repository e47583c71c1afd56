package own

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"

	"tare/areas/bundle"
	"tare/internal/files"
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

// eachDeploying calls do for each file that says what Flux leaves out of the folder of a bundle, or of those above it,
// up to the top of its repository. Of what a folder's kustomization builds it does so also for those in or above the
// folders that are built, and for other files that tell a deployer what to leave out or to make otherwise.
func eachDeploying(from, at string, do func(o object) error) error {
	folder := at
	if isFolder, err := bundle.IsFolder(from); err != nil {
		return err
	} else if folder == "" && isFolder {
		folder = from
	} else if folder == "" {
		folder = filepath.Dir(from)
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	all, reader := map[string]string{}, bundle.NewReader() // by their paths in the folder
	folders := []string{folder}
	if at != "" {
		g, err := gather(at)
		if err != nil {
			return err
		}
		folders = slices.Collect(maps.Keys(g.Visits))
		err = bundle.Each(at, func(name string, text []byte) error {
			if deploys(name) {
				all[name] = string(text)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	top := files.Top(folder)
	for _, in := range folders {
		for {
			name, isIn := within(top, filepath.Join(in, bundle.LeftByFlux))
			if !isIn {
				break
			}
			switch text, err := reader.Read(top, name); {
			case err == nil:
				shown, _ := filepath.Rel(folder, filepath.Join(top, name)) // both are absolute
				all[shown] = string(text)
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			in = filepath.Dir(in)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if err := do(source{name: name}.whole(all[name])); err != nil {
			return err
		}
	}
	return nil
}
