package fga

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

const (
	// mostDeep bounds the nesting of a file.
	mostDeep = 64
	// mostText bounds a file: what is made of it takes fifty times as much memory.
	mostText = 32 << 20
)

// parse reads a document of YAML or JSON. Aliases are refused where they are met: what they stand for could be more
// than any memory.
func parse(file string, text []byte) (*yaml.Node, error) {
	if len(text) > mostText {
		return nil, fmt.Errorf("%s: more than %d MiB of YAML or JSON: put relationships into a file of CSV", file,
			mostText>>20)
	}
	loader, err := yaml.NewLoader(bytes.NewReader(text),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(mostDeep))))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var doc, more yaml.Node
	if err := loader.Load(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s is empty", file)
		}
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if err := loader.Load(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: want one document of YAML", file)
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		return doc.Content[0], nil
	}
	return &doc, nil
}

// An item is a node with its file, for errors.
type item struct {
	*yaml.Node
	file string
}

func (i item) errorf(format string, args ...any) error {
	return fmt.Errorf("%s:%d:%d: %w", i.file, i.Line, i.Column, fmt.Errorf(format, args...))
}

// fields returns the values of a mapping by key. A key that is not among the known ones is an error.
func (i item) fields(what string, known ...string) (map[string]item, error) {
	if i.Kind != yaml.MappingNode {
		return nil, i.errorf("want %s: a mapping of %s", what, strings.Join(known, ", "))
	}
	out := map[string]item{}
	for k := 0; k+1 < len(i.Content); k += 2 {
		key, value := item{i.Content[k], i.file}, item{i.Content[k+1], i.file}
		switch _, there := out[key.Value]; {
		case there:
			return nil, key.errorf("%s is there twice", key.Value)
		case !slices.Contains(known, key.Value):
			return nil, key.errorf("%s has no field %q: there are %s", what, key.Value, strings.Join(known, ", "))
		}
		out[key.Value] = value
	}
	return out, nil
}

// list are the items of a sequence; none of what is not there.
func (i item) list(what string) (out []item, err error) {
	switch {
	case i.Node == nil || i.Tag == "!!null":
		return nil, nil
	case i.Kind != yaml.SequenceNode:
		return nil, i.errorf("want a list of %s", what)
	}
	for _, n := range i.Content {
		out = append(out, item{n, i.file})
	}
	return out, nil
}

// text is that of a scalar; "" of what is not there.
func (i item) text(what string) (string, error) {
	switch {
	case i.Node == nil || i.Tag == "!!null":
		return "", nil
	case i.Kind != yaml.ScalarNode:
		return "", i.errorf("want %s: text", what)
	}
	return i.Value, nil
}

// texts are those of a list of scalars.
func (i item) texts(what string) (out []string, err error) {
	items, err := i.list(what)
	if err != nil {
		return nil, err
	}
	for _, one := range items {
		s, err := one.text(what)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// value is what a node stands for, in JSON. Times stay the text that they are.
func (i item) value() (json.RawMessage, error) {
	v, err := plain(i.Node)
	if err != nil {
		return nil, i.errorf("%w", err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, i.errorf("%w", err)
	}
	return text, nil
}

func plain(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		for k := 0; k+1 < len(n.Content); k += 2 {
			key := n.Content[k]
			if _, there := out[key.Value]; there || key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return nil, fmt.Errorf("key %q: want text, and each key once", key.Value)
			}
			v, err := plain(n.Content[k+1])
			if err != nil {
				return nil, err
			}
			out[key.Value] = v
		}
		return out, nil
	case yaml.SequenceNode:
		out := []any{}
		for _, c := range n.Content {
			v, err := plain(c)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case yaml.ScalarNode:
		if n.Tag == "!!timestamp" || n.Tag == "!!binary" {
			return n.Value, nil
		}
		var v any
		err := n.Decode(&v)
		return v, err
	case yaml.AliasNode, yaml.DocumentNode, yaml.StreamNode:
	}
	return nil, errors.New("aliases are not taken: write it out")
}
