package own

import (
	"fmt"
	"strings"

	node "go.yaml.in/yaml/v4"
)

// mostAliased bounds what aliases of a document stand for, in nodes: a few lines can stand for more than any memory.
const mostAliased = 10_000

// checkAliases refuses a document whose aliases stand for too much. What is no YAML is left to others.
func (d document) checkAliases() error {
	if !strings.Contains(d.text, "*") || !strings.Contains(d.text, "&") {
		return nil
	}
	c := counter{}
	if doc, ok := d.nodes(); ok {
		c.count(doc, false)
	}
	if c.aliased > mostAliased {
		return fmt.Errorf("its aliases stand for more than %d nodes: write them out", mostAliased)
	}
	return nil
}

// A counter counts nodes, up to a bound.
type counter struct{ aliased int }

// count counts the nodes below one that are there by an alias.
func (c *counter) count(at *node.Node, aliased bool) {
	if aliased {
		c.aliased++
	}
	if c.aliased > mostAliased {
		return
	}
	if at.Kind == node.AliasNode && at.Alias != nil {
		c.count(at.Alias, true)
	}
	for _, below := range at.Content {
		c.count(below, aliased)
	}
}
