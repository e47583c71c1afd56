package report

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"

	terminal "tare/internal/term"
)

// An Encoder writes a report in one format.
type Encoder func(io.Writer, *Report) error

// Encoders returns the encoders of all formats by the names that "-o" accepts. Encoders of other tools' block formats
// fail with ErrNoBlocks if the report has no blocks.
func Encoders() map[string]Encoder {
	return map[string]Encoder{
		"text": Text, "markdown": Markdown, "json": JSON, "yaml": YAML, "junit": JUnit, "sarif": SARIF,
		"openmetrics": OpenMetrics, "benchfmt": Benchfmt, "hyperfine": Hyperfine, "github-action-benchmark": ActionBenchmark,
	}
}

// JSON writes the report as indented JSON, in the order of the model and with sorted maps: equal reports give equal
// bytes.
func JSON(w io.Writer, r *Report) error {
	text, err := indented(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = io.WriteString(w, terminal.JSON(text))
	return err
}

// indented returns a value as JSON for people, who read "<" more easily than its escape.
func indented(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.String(), err
}

// YAML writes the same as JSON, with the same names and in the same order.
func YAML(w io.Writer, r *Report) error {
	text, err := indented(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	// JSON is YAML: parsed as nodes, it keeps its order, and only the flow style must be removed.
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	useBlockStyle(&n)
	out, err := yaml.Marshal(&n)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = io.WriteString(w, terminal.YAML(string(out)))
	return err
}

// useBlockStyle removes the flow style from a tree. Strings keep their quotes, so that "yes" and "1e3" stay strings.
func useBlockStyle(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = 0
	}
	for i, c := range n.Content {
		useBlockStyle(c)
		if n.Kind == yaml.MappingNode && i%2 == 0 && simpleKey.MatchString(c.Value) {
			c.Style = 0 // the model's own names need no quotes; names from a record could begin like a CI system's command
		}
	}
}

var simpleKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$`)
