package mechanism

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	split "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// NamespacePlaceholder stands in manifests for the name of the run's namespace, which differs for every treatment.
const NamespacePlaceholder = "$(TARE_NAMESPACE)"

// PolicyPlaceholder stands in manifests for the short name of a policy: five digits. A document that contains it is
// rendered once for each policy.
const PolicyPlaceholder = "$(TARE_POLICY)"

const (
	mostManifest = 16 << 20 // bytes of one file
	mostObjects  = 20_000   // of one directory
)

// Files are the objects of a directory of manifests.
type Files struct {
	Objects []*unstructured.Unstructured
	Kinds   []schema.GroupVersionKind // of the objects, the last created first, each once
	Counted bool                      // some document is rendered once for each policy
}

// ReadManifests reads all *.yaml, *.yml and *.json files of a directory and its subdirectories, in the order of their
// names, and renders their objects with this run's labels. Documents with PolicyPlaceholder are rendered once for each
// of 1 ≤ n ≤ policies. Errors name the file and the document.
func ReadManifests(dir fs.FS, s Scope, policies int) (Files, error) {
	if err := s.check(Manifests); err != nil {
		return Files{}, fmt.Errorf("read manifests: %w", err)
	}
	var out Files
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		text, err := readFile(dir, name)
		if err != nil {
			return err
		}
		objects, err := Decode(name, text, s, policies)
		out.Objects = append(out.Objects, objects...)
		out.Counted = out.Counted || bytes.Contains(text, []byte(PolicyPlaceholder))
		if err == nil && len(out.Objects) > mostObjects {
			err = fmt.Errorf("%s: more than %d objects", name, mostObjects)
		}
		return err
	})
	if err != nil {
		return Files{}, fmt.Errorf("read manifests: %w", err)
	}
	if len(out.Objects) == 0 {
		return Files{}, errors.New("read manifests: the directory holds no object in a *.yaml, *.yml or *.json file")
	}
	out.Kinds = KindsOf(out.Objects)
	return out, nil
}

func readFile(dir fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(dir, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a named pipe would wait for whoever writes into it
		return nil, fmt.Errorf("%s is no regular file", name)
	}
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

// Decode decodes the documents of one file, YAML or JSON, replaces NamespacePlaceholder, and adds this run's labels to
// every object. It splits lists. A document with PolicyPlaceholder is rendered once for each policy, with its short
// name. name is for errors.
func Decode(name string, text []byte, s Scope, policies int) ([]*unstructured.Unstructured, error) {
	text = bytes.ReplaceAll(text, []byte(NamespacePlaceholder), []byte(s.Namespace))
	documents := split.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var out []*unstructured.Unstructured
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil {
			var objects []*unstructured.Unstructured
			objects, err = decodeDocuments(document, s, policies, mostObjects-len(out))
			out = append(out, objects...)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, n, err)
		}
	}
}

// decodeDocuments decodes a document once for each policy, or once, into at most so many objects.
func decodeDocuments(document []byte, s Scope, policies, most int) (out []*unstructured.Unstructured, err error) {
	for _, one := range perPolicy(document, policies) {
		objects, err := decodeDocument(one)
		if err == nil && len(out)+len(objects) > most {
			err = fmt.Errorf("more than %d objects", mostObjects)
		}
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			Label(o, s)
		}
		out = append(out, objects...)
	}
	return out, nil
}

// perPolicy yields a document once for each policy if it contains PolicyPlaceholder, and else once unchanged. It
// renders lazily, so that thousands of large documents are not held at once.
func perPolicy(document []byte, policies int) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		if !bytes.Contains(document, []byte(PolicyPlaceholder)) {
			yield(0, document)
			return
		}
		for n := 1; n <= policies; n++ {
			if !yield(n, bytes.ReplaceAll(document, []byte(PolicyPlaceholder), fmt.Appendf(nil, "%05d", n))) {
				return
			}
		}
	}
}

// Label adds this run's labels to o.
func Label(o *unstructured.Unstructured, s Scope) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{RunLabel: s.Run, OwnerLabel: Owner})
	o.SetLabels(labels)
}

// decodeDocument decodes one document: nothing, an object, or a list of objects.
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

// whole returns an error if o lacks what it needs to be created and found again.
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

// KindsOf returns the kinds of objects, the last created first, each once.
func KindsOf(objects []*unstructured.Unstructured) (out []schema.GroupVersionKind) {
	for _, o := range slices.Backward(objects) {
		if gvk := o.GroupVersionKind(); !slices.Contains(out, gvk) {
			out = append(out, gvk)
		}
	}
	return out
}

// Defined returns the kinds, and their resources, that the CustomResourceDefinitions among objects have served.
func Defined(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]schema.GroupVersionResource {
	out := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() != (schema.GroupKind{
			Group: "apiextensions.k8s.io",
			Kind:  "CustomResourceDefinition",
		}) {
			continue
		}
		text := func(path ...string) string {
			word, _, _ := unstructured.NestedString(o.Object, path...) // anything but text names nothing
			return word
		}
		group, kind, plural := text("spec", "group"), text("spec", "names", "kind"), text("spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			if version, ok := v.(map[string]any); ok && plural != "" && version["served"] != false {
				name, _ := version["name"].(string)
				gv := schema.GroupVersion{Group: group, Version: name}
				out[gv.WithKind(kind)] = gv.WithResource(plural)
			}
		}
	}
	return out
}

// badPod is the name of the pod that manifests must deny.
const badPod = "tare-probe-bad"

// FileProof proves manifests by two files with one pod each: one that must be admitted (nil: the measured pod), and one
// that must be denied. It sets the pods' names and namespace. The denial must contain all of says, and texts with
// PolicyPlaceholder once for each policy.
func FileProof(good, bad []byte, says []string, policies int, s Scope) (Proof, error) {
	proof := Prove(Manifests, Population{}, s)
	if good != nil {
		pod, err := DecodePod(good, s, proof.Good.Name)
		if err != nil {
			return Proof{}, fmt.Errorf("the good pod: %w", err)
		}
		proof.Good.Pod = pod
	}
	pod, err := DecodePod(bad, s, badPod)
	if err != nil {
		return Proof{}, fmt.Errorf("the bad pod: %w", err)
	}
	probe := Probe{Name: badPod, Why: "the manifests deny the bad pod", Pod: pod, Want: Denied}
	for _, text := range says {
		text = strings.ReplaceAll(text, NamespacePlaceholder, s.Namespace)
		for _, one := range perPolicy([]byte(text), policies) {
			probe.Says = append(probe.Says, string(one))
		}
	}
	proof.Bad = []Probe{probe}
	return proof, nil
}

// DecodePod decodes a file that holds one pod, and gives it a name and the namespace.
func DecodePod(text []byte, s Scope, name string) ([]byte, error) {
	objects, err := Decode(name, text, s, 0)
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
