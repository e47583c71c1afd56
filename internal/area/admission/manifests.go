package admission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/internal/area/admission/mechanism"
)

// mostPod bounds a file with a pod, in bytes.
const mostPod = 1 << 20

// read reads what puts a third-party engine in force, what comes when that has gone, and the pods that prove it.
func (m *Manifests) read(s mechanism.Scope) (before, after mechanism.Rendered, proof mechanism.Proof, err error) {
	if before, err = readDirectory(m.Before, s); err != nil {
		return before, after, proof, fmt.Errorf("manifests.before: %w", err)
	}
	if m.After != "" {
		if after, err = readDirectory(m.After, s); err != nil {
			return before, after, proof, fmt.Errorf("manifests.after: %w", err)
		}
	}
	bad, err := readPod(m.Bad)
	if err != nil {
		return before, after, proof, fmt.Errorf("manifests.bad: %w", err)
	}
	var good []byte
	if m.Good != "" {
		if good, err = readPod(m.Good); err != nil {
			return before, after, proof, fmt.Errorf("manifests.good: %w", err)
		}
	}
	if proof, err = mechanism.FileProof(good, bad, s); err != nil {
		return before, after, proof, fmt.Errorf("manifests: %w", err)
	}
	return before, after, proof, nil
}

// readDirectory reads all manifests of a directory, which must not lead out of it.
func readDirectory(dir string, s mechanism.Scope) (mechanism.Rendered, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return mechanism.Rendered{}, err
	}
	out, err := mechanism.ReadManifests(root.FS(), s)
	return out, errors.Join(err, root.Close())
}

func readPod(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > mostPod {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, mostPod)
	}
	return os.ReadFile(filepath.Clean(path))
}

// withManifests takes the files in place of what tare renders itself.
func (p *place) withManifests() (err error) {
	x := &p.policies
	if x.rendered, x.after, x.proof, err = p.spec.Manifests.read(p.scope()); err != nil {
		return err
	}
	x.wide = wide(x.rendered.Objects, p.namespace)
	return nil
}

// wide names the objects that may act on more than the run's namespace.
func wide(objects []*unstructured.Unstructured, namespace string) (out []string) {
	for _, o := range objects {
		if !mechanism.Confined(o, namespace) {
			out = append(out, o.GetKind()+" "+o.GetName())
		}
	}
	return out
}

// cleanUp creates what comes after the engine has gone, such as a job that cleans up, and removes it again.
func (p *place) cleanUp(ctx context.Context) error {
	x := &p.policies
	if len(x.after.Objects) == 0 {
		return nil
	}
	return errors.Join(x.keeper.Apply(ctx, x.after.Objects, 1), x.keeper.RemoveAll(ctx, x.after.Resources))
}
