package replica

import (
	"bytes"
	"fmt"

	node "go.yaml.in/yaml/v4"
	"sigs.k8s.io/yaml"
)

const (
	// MostYAML bounds a file that is read as YAML, which takes far more memory than JSON.
	MostYAML = 4 << 20
	// mostAliased bounds what aliases stand for, in bytes: a few lines can stand for more than any memory.
	mostAliased = 256 << 10
)

// JSON is a document of YAML in JSON.
func JSON(text []byte) ([]byte, error) {
	var all node.Node
	err := node.Unmarshal(text, &all)
	if err != nil && bytes.ContainsRune(text, '&') && bytes.ContainsRune(text, '*') {
		return nil, err // the other parser, which reads "a"#b, would write out aliases that are not counted
	}
	n := 0
	if count(&n, &all, false); n > mostAliased {
		return nil, fmt.Errorf("its aliases stand for more than %d KiB: write them out", mostAliased>>10)
	}
	return yaml.YAMLToJSON(text)
}

// count adds to n what is there by aliases, up to a bound.
func count(n *int, at *node.Node, aliased bool) {
	if aliased {
		*n += 1 + len(at.Value)
	}
	if *n > mostAliased {
		return
	}
	if at.Kind == node.AliasNode && at.Alias != nil {
		count(n, at.Alias, true)
	}
	for _, below := range at.Content {
		count(n, below, aliased)
	}
}
