package config

import "go.yaml.in/yaml/v4"

const fullField = "full"

// inFull returns the file with the fields of its section full in place of its own: mappings are merged one level deep,
// all else is replaced. Nodes keep their positions, so that diagnostics point to the right place.
func inFull(root *yaml.Node) *yaml.Node {
	out := *root
	out.Content = nil
	var full *yaml.Node
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == fullField {
			full = root.Content[i+1]
			continue
		}
		out.Content = append(out.Content, root.Content[i], root.Content[i+1])
	}
	if full == nil {
		return &out
	}
	overlay(&out, aliased(full), func(name string) bool { return name == "load" })
	return &out
}

// aliased follows aliases; the walker has bounded their number when it read the file first.
func aliased(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// overlay copies the fields of over into base. It merges those mappings for which merge is true.
func overlay(base, over *yaml.Node, merge func(name string) bool) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		at := -1
		for k := 0; k+1 < len(base.Content); k += 2 {
			if base.Content[k].Value == key.Value {
				at = k
			}
		}
		switch {
		case at < 0:
			base.Content = append(base.Content, key, value)
		case merge(key.Value) && aliased(base.Content[at+1]).Kind == yaml.MappingNode &&
			aliased(value).Kind == yaml.MappingNode:
			merged := *aliased(base.Content[at+1])
			merged.Content = append([]*yaml.Node(nil), merged.Content...)
			overlay(&merged, aliased(value), func(string) bool { return false })
			base.Content[at+1] = &merged
		default:
			base.Content[at+1] = value
		}
	}
}
