package own

import (
	"fmt"
	"strings"

	node "go.yaml.in/yaml/v4"
)

// What aliases of a document may stand for: a few lines, or one long text, can stand for more than any memory.
const (
	mostAliased     = 10_000    // in nodes
	mostAliasedText = 256 << 10 // in bytes
)

// mayAlias reports whether the document may have aliases.
func (d document) mayAlias() bool {
	return strings.Contains(d.text, "*") && strings.Contains(d.text, "&")
}

// checkCounted refuses a document that may have aliases and cannot be read by the parser that counts what they stand
// for: the other one, which reads "a"#b, would write them out.
func (d document) checkCounted() (err error) {
	if d.mayAlias() {
		_, err = d.nodes()
	}
	return err
}

// checkAliases refuses a document whose aliases stand for too much. What is no YAML is left to others.
func (d document) checkAliases() error {
	if !d.mayAlias() {
		return nil
	}
	c := counter{}
	if doc, err := d.nodes(); err == nil {
		c.count(doc, false)
	}
	if c.full() {
		return fmt.Errorf("its aliases stand for more than %d nodes, or %d KiB of text: write them out", mostAliased,
			mostAliasedText>>10)
	}
	return nil
}

// A counter counts nodes and the bytes of their text, up to a bound of each.
type counter struct{ aliased, text int }

func (c *counter) full() bool { return c.aliased > mostAliased || c.text > mostAliasedText }

// count counts the nodes below one that are there by an alias.
func (c *counter) count(at *node.Node, aliased bool) {
	if aliased {
		c.aliased++
		c.text += len(at.Value)
	}
	if c.full() {
		return
	}
	if at.Kind == node.AliasNode && at.Alias != nil {
		c.count(at.Alias, true)
	}
	for _, below := range at.Content {
		c.count(below, aliased)
	}
}
