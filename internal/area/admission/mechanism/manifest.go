package mechanism

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	split "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// NamespacePlaceholder stands in manifests for the name of our namespace, which is another one for every treatment.
const NamespacePlaceholder = "$(TARE_NAMESPACE)"

const (
	mostManifest = 16 << 20 // bytes of one file
	mostObjects  = 20_000   // of one directory
)

// ReadManifests reads all *.yaml, *.yml and *.json files of a directory and those below it, in the order of their names, and renders their objects in that
// order, labelled as ours. Resources are in the reverse order, and guessed from the kinds: discovery knows better. Errors name the file
// and the document.
func ReadManifests(dir fs.FS, s Scope) (Rendered, error) {
	if err := s.check(Manifests); err != nil {
		return Rendered{}, fmt.Errorf("read manifests: %w", err)
	}
	var out Rendered
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		text, err := readFile(dir, name)
		if err != nil {
			return err
		}
		objects, err := Decode(name, text, s)
		out.Objects = append(out.Objects, objects...)
		if err == nil && len(out.Objects) > mostObjects {
			err = fmt.Errorf("%s: more than %d objects", name, mostObjects)
		}
		return err
	})
	if err != nil {
		return Rendered{}, fmt.Errorf("read manifests: %w", err)
	}
	if len(out.Objects) == 0 {
		return Rendered{}, errors.New("read manifests: the directory holds no object in a *.yaml, *.yml or *.json file")
	}
	out.Resources = guessResources(out.Objects)
	return out, nil
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, mostManifest+1))
	if err == nil && len(text) > mostManifest {
		err = fmt.Errorf("larger than %d bytes", mostManifest)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// Decode reads the documents of one file, YAML or JSON, and puts our namespace's name for NamespacePlaceholder and our labels on every object. Lists
// are taken apart. name is for errors.
func Decode(name string, text []byte, s Scope) ([]*unstructured.Unstructured, error) {
	text = bytes.ReplaceAll(text, []byte(NamespacePlaceholder), []byte(s.Namespace))
	documents := split.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var out []*unstructured.Unstructured
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		var objects []*unstructured.Unstructured
		if err == nil {
			objects, err = decodeDocument(document)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, n, err)
		}
		for _, o := range objects {
			own(o, s)
		}
		out = append(out, objects...)
	}
}

// own labels o as ours.
func own(o *unstructured.Unstructured, s Scope) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{RunLabel: s.Run, OwnerLabel: Owner})
	o.SetLabels(labels)
}

// decodeDocument reads one document: nothing, an object, or a list of objects.
func decodeDocument(text []byte) ([]*unstructured.Unstructured, error) {
	content, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	if string(bytes.TrimSpace(content)) == "null" {
		return nil, nil
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(content); err != nil {
		return nil, err
	}
	if !o.IsList() {
		return []*unstructured.Unstructured{o}, whole(o)
	}
	list, err := o.ToList()
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		if err := whole(&list.Items[i]); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		out = append(out, &list.Items[i])
	}
	return out, nil
}

// whole says what o lacks to be created and found again.
func whole(o *unstructured.Unstructured) error {
	switch {
	case o.GetAPIVersion() == "" || o.GetKind() == "":
		return errors.New("not an object: apiVersion and kind are missing")
	case o.GetName() == "":
		return fmt.Errorf("%s without a metadata.name: generated names cannot be found again", o.GetKind())
	}
	if _, err := schema.ParseGroupVersion(o.GetAPIVersion()); err != nil {
		return err
	}
	if _, _, err := unstructured.NestedStringMap(o.Object, "metadata", "labels"); err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// guessResources are the resources of objects, what was created last first, each once.
func guessResources(objects []*unstructured.Unstructured) (out []schema.GroupVersionResource) {
	for _, o := range slices.Backward(objects) {
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		if !slices.Contains(out, plural) {
			out = append(out, plural)
		}
	}
	return out
}

// FileProof proves manifests by two files of one pod each: one that must be admitted (nil: the pod that is otherwise measured), and one that must be denied.
// The pods get names and the namespace of ours.
func FileProof(good, bad []byte, s Scope) (Proof, error) {
	proof := Prove(Manifests, Population{}, s)
	if good != nil {
		pod, err := decodePod(good, s, proof.Good.Name)
		if err != nil {
			return Proof{}, fmt.Errorf("the good pod: %w", err)
		}
		proof.Good.Pod = pod
	}
	pod, err := decodePod(bad, s, "tare-probe-bad")
	if err != nil {
		return Proof{}, fmt.Errorf("the bad pod: %w", err)
	}
	proof.Bad = []Probe{{Name: "tare-probe-bad", Why: "the manifests deny the bad pod", Pod: pod, Want: Denied}}
	return proof, nil
}

func decodePod(text []byte, s Scope, name string) ([]byte, error) {
	objects, err := Decode(name, text, s)
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 || objects[0].GetKind() != "Pod" || objects[0].GetAPIVersion() != "v1" {
		return nil, fmt.Errorf("want one object, a Pod of v1, got %s", strings.Join(kinds(objects), ", "))
	}
	objects[0].SetName(name)
	objects[0].SetNamespace(s.Namespace)
	return objects[0].MarshalJSON()
}

func kinds(objects []*unstructured.Unstructured) []string {
	if len(objects) == 0 {
		return []string{"nothing"}
	}
	var out []string
	for _, o := range objects {
		out = append(out, o.GetKind())
	}
	return out
}
