package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// step is a part of a path: a name, or an index in brackets.
var step = regexp.MustCompile(`^(?:\.?([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]{1,4})\])`)

// Set returns the experiment with one value replaced or added. The path is as errors name it, "load.max_rate" or
// "treatments[1].mode"; the value is YAML. Comments stay.
func Set(data []byte, path, value string) ([]byte, error) {
	root, faults := readSource(data)
	if root == nil {
		return nil, fmt.Errorf("line %d: %s", faults[0].line, faults[0].message)
	}
	v, faults := readSource([]byte(value))
	if v == nil {
		return nil, fmt.Errorf("the value: %s", faults[0].message)
	}
	at := root
	for rest := path; rest != ""; {
		m := step.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("%q is not a path such as load.max_rate or treatments[1].mode", path)
		}
		rest = rest[len(m[0]):]
		var err error
		if at, err = descend(at, m[1], m[2]); err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(path, rest), err)
		}
	}
	if at == root {
		return nil, fmt.Errorf("no path before %q", "="+value)
	}
	*at = *v
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}

// descend returns the node of a field, which it adds if there is none, or of an item.
func descend(at *yaml.Node, name, index string) (*yaml.Node, error) {
	if name == "" {
		i, err := strconv.Atoi(index)
		if err != nil || at.Kind != yaml.SequenceNode || i >= len(at.Content) {
			return nil, fmt.Errorf("there is no such item; a list's first is [0]")
		}
		return at.Content[i], nil
	}
	if at.Kind == yaml.ScalarNode && at.Tag == "!!null" {
		*at = yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	if at.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("what is to hold %q has no fields", name)
	}
	for i := 0; i+1 < len(at.Content); i += 2 {
		if at.Content[i].Value == name {
			return at.Content[i+1], nil
		}
	}
	key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}
	field := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	at.Content = append(at.Content, key, field)
	return field, nil
}
