package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// An Encoder writes a report in one form.
type Encoder func(io.Writer, *Report) error

// Encoders are all forms by the names under which "-o" knows them. Those of other tools' formats for block values fail with ErrNoBlocks
// where there are none.
func Encoders() map[string]Encoder {
	return map[string]Encoder{
		"text": Text, "markdown": Markdown, "json": JSON, "yaml": YAML, "junit": JUnit, "openmetrics": OpenMetrics,
		"benchfmt": Benchfmt, "benchstat": Benchstat, "hyperfine": Hyperfine, "github-action-benchmark": ActionBenchmark,
	}
}

// JSON writes the report as indented JSON, in the order of the model and with sorted maps: equal reports give equal bytes.
func JSON(w io.Writer, r *Report) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// YAML writes what JSON writes, with the same names and in the same order.
func YAML(w io.Writer, r *Report) error {
	var b bytes.Buffer
	if err := JSON(&b, r); err != nil {
		return err
	}
	// JSON is YAML: read as nodes, it keeps its order, and only the brackets have to go.
	var n yaml.Node
	if err := yaml.Unmarshal(b.Bytes(), &n); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	unfold(&n)
	out, err := yaml.Marshal(&n)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = w.Write(out)
	return err
}

// unfold takes the flow style off a tree. Strings keep their quotes, so that "yes" and "1e3" stay strings.
func unfold(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = 0
	}
	for i, c := range n.Content {
		unfold(c)
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			c.Style = 0 // names need none
		}
	}
}
