package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/bundle"
	"tare/internal/files"
	"tare/internal/kit"
)

// mostPod bounds the file of a pod, in bytes.
const mostPod = 1 << 20

// manifested is the content of the files of a third-party engine.
type manifested struct {
	before, after mechanism.Files
	proof         mechanism.Proof
}

// read reads the files that install a third-party engine with so many policies, those applied after its removal, and
// the pods that prove it.
func (m *Manifests) read(s mechanism.Scope, policies int) (out manifested, err error) {
	if out.before, err = readDirectory(m.Before, s, policies); err != nil {
		return out, fmt.Errorf("manifests.before: %w", err)
	}
	if m.After != "" {
		if out.after, err = readDirectory(m.After, s, policies); err != nil {
			return out, fmt.Errorf("manifests.after: %w", err)
		}
	}
	out.proof, err = m.prove(s, policies)
	return out, err
}

// check looks for the folders and files that are named. What they hold is read by the preflight.
func (m *Manifests) check() (out []area.Finding) {
	if m == nil {
		return nil
	}
	for _, x := range []struct {
		path, name string
		isFolder   bool
	}{{"before", m.Before, true}, {"after", m.After, true}, {"good", m.Good, false}, {"bad", m.Bad, false}} {
		if x.name == "" {
			continue
		}
		want := "file"
		if x.isFolder {
			want = "folder"
		}
		isFolder, err := bundle.IsFolder(x.name)
		if err == nil && isFolder != x.isFolder {
			err = fmt.Errorf("%s is not a %s", x.name, want)
		}
		if err != nil {
			out = append(out, area.Fault("manifests."+x.path, err, ""))
		}
	}
	return out
}

// prove reads the pods that prove the policies.
func (m *Manifests) prove(s mechanism.Scope, policies int) (proof mechanism.Proof, err error) {
	bad, err := readPod(m.Bad)
	if err != nil {
		return proof, fmt.Errorf("manifests.bad: %w", err)
	}
	var good []byte
	if m.Good != "" {
		if good, err = readPod(m.Good); err != nil {
			return proof, fmt.Errorf("manifests.good: %w", err)
		}
	}
	if proof, err = mechanism.FileProof(good, bad, m.Says, policies, s); err != nil {
		return proof, fmt.Errorf("manifests: %w", err)
	}
	return proof, nil
}

// beyond is an error if manifests have requests judged that are not the run's, on a cluster that tare did not start,
// and the file does not agree to that.
func (p *plan) beyond(m manifested, s mechanism.Scope) error {
	if !p.foreign || p.spec.Manifests.ClusterWide {
		return nil
	}
	var out []string
	for _, o := range slices.Concat(m.before.Objects, m.after.Objects) {
		if mechanism.Judges(o) && !mechanism.Confined(o, s.Namespace) {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	if len(out) == 0 {
		return nil
	}
	return fmt.Errorf("manifests: %s would judge requests in other namespaces of a cluster that tare did not start: give "+
		"it the namespaceSelector {matchLabels: {kubernetes.io/metadata.name: $(TARE_NAMESPACE)}}; or, on a cluster that "+
		"nobody else uses, set manifests: {cluster_wide: true}", kit.FirstOf(out))
}

// manifests reads the files of a plan. A treatment with a number of policies requires a document that is repeated so
// often.
func (p *plan) manifests(s mechanism.Scope) (manifested, error) {
	out, err := p.spec.Manifests.read(s, p.copies)
	if err == nil && p.counted && !out.before.Counted {
		err = fmt.Errorf("policies: no document of %s holds %s, so that there would be as many whatever the number is: "+
			"write it into the name of what comes once for each policy",
			p.spec.Manifests.Before, mechanism.PolicyPlaceholder)
	}
	if err == nil {
		err = p.beyond(out, s)
	}
	return out, err
}

// readDirectory reads all manifests of a directory, and no file outside it.
func readDirectory(dir string, s mechanism.Scope, policies int) (mechanism.Files, error) {
	f, err := files.Given(dir)
	if err != nil {
		return mechanism.Files{}, err
	}
	root, err := files.Root(f)
	if err != nil {
		return mechanism.Files{}, err
	}
	out, err := mechanism.ReadManifests(root.FS(), s, policies)
	return out, errors.Join(err, root.Close())
}

func readPod(path string) ([]byte, error) { return kit.ReadText(path, mostPod) }

// withManifests uses the files in place of rendered policies. It asks the server for the resources of their kinds.
func (p *arm) withManifests(ctx context.Context) error {
	x := &p.policies
	files, err := p.manifests(p.scope())
	if err != nil {
		return err
	}
	x.proof, x.rendered.Objects, x.after.Objects = files.proof, files.before.Objects, files.after.Objects
	if x.rendered.Resources, x.coming, err = x.keeper.Lookup(ctx, files.before.Kinds); err != nil {
		return err
	}
	var late []schema.GroupVersionKind // they appear with the engine
	if x.after.Resources, late, err = x.keeper.Lookup(ctx, files.after.Kinds); err != nil {
		return err
	}
	for _, k := range late {
		if !slices.Contains(x.coming, k) {
			x.coming = append(x.coming, k)
		}
	}
	x.wide = wide(x.rendered.Objects, p.namespace)
	return nil
}

// wide names the objects that may act outside the run's namespace.
func wide(objects []*unstructured.Unstructured, namespace string) (out []string) {
	for _, o := range objects {
		if !mechanism.Confined(o, namespace) {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	return out
}

// cleanUp creates the objects that follow the engine's removal, such as a cleanup job, and removes them again.
func (p *arm) cleanUp(ctx context.Context) error {
	x := &p.policies
	if len(x.after.Objects) == 0 {
		return nil
	}
	return errors.Join(x.keeper.Apply(ctx, x.after.Objects, 1), x.keeper.RemoveAll(ctx, x.after.Resources, x.coming...))
}
