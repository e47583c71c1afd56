package own

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/bundle"
	"tare/internal/files"
)

// Copy copies a bundle into a folder, as name, so that the whole run has the same: of a kustomization, what it builds.
// Secrets, which no policy needs, stay behind: records are published.
func Copy(folder, name, from string) error {
	at := kustomized(from)
	if at == "" {
		return bundle.Copy(folder, name, from, func(_ string, text []byte) []byte { return withoutSecrets(text) })
	}
	text, err := build(at)
	if err != nil {
		return err
	}
	to, err := files.Reach(folder)
	if err == nil {
		err = errors.Join(to.Write(name, withoutSecrets(text)), to.Close())
	}
	if err != nil {
		return fmt.Errorf("copy the policies of %s: %w", from, err)
	}
	return nil
}

// withoutSecrets leaves Secrets out of a file. What stands behind them keeps its line.
func withoutSecrets(text []byte) []byte {
	const kind = "Secret"
	if !bytes.Contains(text, []byte(kind)) {
		return text
	}
	lines := slices.Collect(bytes.Lines(text))
	for _, d := range documents("", string(text)) {
		objects, err := d.objects()
		if err != nil {
			continue // a run says what is wrong
		}
		kept := slices.DeleteFunc(slices.Clone(objects), func(o object) bool {
			return o.GroupVersionKind().GroupKind() == schema.GroupKind{Kind: kind}
		})
		if len(kept) == len(objects) {
			continue
		}
		at := d.line - 1
		for range strings.Lines(d.text) {
			lines[at] = []byte("\n")
			at++
		}
		if len(kept) > 0 {
			lines[d.line-1] = listOf(kept)
		}
	}
	return bytes.Join(lines, nil)
}

// listOf is a list of objects, as one line.
func listOf(objects []object) []byte {
	list := unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	for _, o := range objects {
		list.Items = append(list.Items, *o.Unstructured)
	}
	text, err := list.MarshalJSON()
	if err != nil {
		return []byte("\n") // it was decoded from JSON
	}
	return append(bytes.TrimSpace(text), '\n')
}
