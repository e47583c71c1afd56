package own

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	node "go.yaml.in/yaml/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"tare/areas/bundle"
)

// A document is one YAML or JSON document of a file, or an item of one that is a list.
type document struct {
	file string
	all  string // of the file
	text string
	line int // of the file, at which text begins; from 1
	item int // of a list, from 0; -1: the document is no list
}

// documents splits a file where kubectl does.
func documents(file, text string) (out []document) {
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	d := document{file: file, all: text, line: 1, item: -1}
	line := 1
	var b strings.Builder
	for one := range strings.Lines(text) {
		line++
		rest, ok := strings.CutPrefix(one, "---")
		if rest = strings.TrimSpace(rest); ok && (rest == "" || rest[0] == '#') {
			d.text = b.String()
			out = append(out, d)
			b.Reset()
			d.line = line
			continue
		}
		b.WriteString(one)
	}
	d.text = b.String()
	return append(out, d)
}

func (d document) place() bundle.Place {
	line := d.line
	for one := range strings.Lines(d.text) { // comments and blank lines before the object
		if word := strings.TrimSpace(one); word != "" && !strings.HasPrefix(word, "#") {
			break
		}
		line++
	}
	return bundle.Place{File: d.file, Line: line}
}

// String is the place of the object, and where several begin on that line, which of them it is.
func (d document) String() string {
	if d.item < 0 {
		return d.place().String()
	}
	return fmt.Sprintf("%s (item %d)", d.place(), d.item+1)
}

func (d document) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", d.place(), fmt.Errorf(format, args...))
}

// lineOf finds the line in an error of one of the parsers.
var lineOf = regexp.MustCompile(`^(?:(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\n\s*)?line ` +
	`|go-yaml load error in \w+ (?:\([^)]*\) )?at L)(\d+)(?:\.C\d+(?:-L\d+\.C\d+)?)?: `)

// keyTwice is what the parser says of a key that a map has twice.
const keyTwice = "already set in map"

// objects decodes the document as kubectl does: of a key that stands twice the last value counts. What is no Kubernetes
// object is left aside, and so is, by name, what is no YAML, such as a template, unless it speaks of policies. What
// kubectl reads and tare does not is refused.
func (d document) objects() ([]object, error) {
	out, err := d.holds()
	return slices.DeleteFunc(out, func(o object) bool { return o.none != "" }), err
}

// holds are the objects of the document, or what it holds in place of one.
func (d document) holds() ([]object, error) {
	if err := d.checkAliases(); err != nil {
		return nil, d.errorf("%w", err)
	}
	content, repeated, err := d.json()
	if err != nil {
		if err = d.unreadable(err); d.mayDecide() {
			return nil, err
		}
		return []object{{Unstructured: &unstructured.Unstructured{}, at: d, unread: err.Error()}}, nil
	}
	if d.goesOn() {
		return nil, d.errorf("the document goes on behind its first object, where some programs read another one, and some " +
			"do not: write --- on a line of its own between them, or make objects in JSON a list")
	}
	if at := oddSeparator.FindStringIndex(d.text); at != nil && (document{text: d.all}).mayDecide() {
		line := d.line + strings.Count(d.text[:at[0]], "\n")
		return nil, fmt.Errorf("%s: kubectl refuses a separator that goes on, and all that follows: write --- on a line of "+
			"its own", bundle.Place{File: d.file, Line: line})
	}
	o := &unstructured.Unstructured{}
	if isObject := o.UnmarshalJSON(content) == nil && o.GetKind() != "" && o.GetAPIVersion() != ""; !isObject {
		if err := d.checkKind(content); err != nil || string(bytes.TrimSpace(content)) == "null" {
			return nil, err
		}
		return []object{{Unstructured: &unstructured.Unstructured{}, at: d, none: string(content)}}, nil
	}
	if helmValue.Match(content) && d.mayDecide() {
		return nil, d.errorf("%s", rendersNone)
	}
	if !o.IsList() {
		return []object{{Unstructured: o, at: d, repeated: repeated}}, nil
	}
	return d.items(object{Unstructured: o, at: d, repeated: repeated})
}

// json is the document in JSON, and what is said of a key that stands twice. kubectl takes what begins like JSON as
// that, in which fewer words have a meaning than in YAML.
func (d document) json() (content []byte, repeated string, err error) {
	if err = d.checkCounted(); err == nil {
		content, err = yaml.YAMLToJSONStrict([]byte(d.text))
	}
	if err != nil && strings.Contains(err.Error(), keyTwice) {
		repeated = d.parserSays(err)
		content, err = yaml.YAMLToJSON([]byte(d.text))
	}
	var object json.RawMessage
	isJSON := strings.HasPrefix(strings.TrimSpace(d.text), "{")
	if isJSON && json.NewDecoder(strings.NewReader(d.text)).Decode(&object) == nil {
		return object, repeated, nil
	}
	return content, repeated, err
}

// items are the objects of a list, and of lists in it. One that says neither its kind nor its version has those of the
// list, as kubectl has it.
func (d document) items(list object) (out []object, err error) {
	all, _ := list.Object["items"].([]any) // it is a list
	for i, one := range all {
		content, isObject := one.(tree)
		if !isObject {
			return nil, d.errorf("item %d of %s is no object", i+1, list.GetKind())
		}
		item := object{Unstructured: &unstructured.Unstructured{Object: content}, at: list.at, repeated: list.repeated}
		if item.at.item < 0 {
			item.at.item = i
		}
		if item.GetKind() == "" && item.GetAPIVersion() == "" {
			item.SetKind(strings.TrimSuffix(list.GetKind(), "List"))
			item.SetAPIVersion(list.GetAPIVersion())
		}
		switch {
		case item.GetKind() == "" || item.GetAPIVersion() == "":
			return nil, fmt.Errorf("%s: an item of %s without a kind or an apiVersion", item.at, list.GetKind())
		case item.IsList():
			within, err := d.items(item)
			if err != nil {
				return nil, err
			}
			out = append(out, within...)
		default:
			out = append(out, item)
		}
	}
	return out, nil
}

// mayGoOn is in each document that can have something behind its first object.
var mayGoOn = regexp.MustCompile(`(?m)\A(?:\s|#.*)*[{\[&!%]|^(?:---|\.\.\.)`)

// beside is what is neither blank nor a comment.
var beside = regexp.MustCompile(`(?m)^\s*[^#\s]`)

// oddSeparator is a line that begins like one between documents and goes on.
var oddSeparator = regexp.MustCompile(`(?m)^---[^\S\n]*[^\s#]`)

// goesOn reports whether something may stand behind the first object, which the parser does not read.
func (d document) goesOn() bool {
	if !mayGoOn.MatchString(d.text) {
		return false
	}
	var object json.RawMessage
	if in := json.NewDecoder(strings.NewReader(d.text)); in.Decode(&object) == nil {
		return beside.MatchString(d.text[in.InputOffset():])
	}
	loader, err := d.loader()
	var first, second node.Node
	return err != nil || loader.Load(&first) != nil || !errors.Is(loader.Load(&second), io.EOF)
}

// mayDecide reports whether the text names a group whose objects decide about requests: what is broken may do so
// anywhere.
func (d document) mayDecide() bool {
	return slices.ContainsFunc(decidingGroups, func(group string) bool { return strings.Contains(d.text, group) })
}

// helmLine is what only a template of Helm's has: a line that is no YAML, or a value of the chart's.
var helmLine = regexp.MustCompile(`(?m)^\s*\{\{-?\s*(?:if|else|end|range|with|define|include|template|block|/\*|\$)` +
	`|\{\{-?\s*[^}\n]*\.(?:Values|Release|Chart|Capabilities)\.`)

// helmValue is what only a template of Helm's has in a value, in JSON.
var helmValue = regexp.MustCompile(`\{\{-?\s*(?:(?:include|template)\s|(?:[^{}]*[\s(])?\$?` +
	`\.(?:Values|Release|Chart|Capabilities)\.)`)

// rendersNone says what to do about a template of Helm's.
const rendersNone = "it is a template of Helm's, and tare renders none: write what 'helm template CHART' prints into " +
	"a file, and name that"

// unreadable is an error about a document that is no YAML.
func (d document) unreadable(err error) error {
	says := d.parserSays(err)
	if helmLine.MatchString(d.text) {
		return fmt.Errorf("%s: %s", says, rendersNone)
	}
	return errors.New(says)
}

// policyKinds are those that nothing but policies has.
var policyKinds = []string{
	policyKind, bindingKind, mutatingKind, mutatingBindingKind, "ClusterPolicy", vpol, mpol, templateKind,
}

// checkKind refuses what is no object because it lacks its kind or its apiVersion, and would be a policy otherwise.
func (d document) checkKind(content []byte) error {
	var o metav1.TypeMeta
	isObject := json.Unmarshal(content, &o) == nil
	switch {
	case isObject && o.Kind == "" && decides(o.GroupVersionKind()):
		return d.errorf("an object of %s without a kind", o.APIVersion)
	case isObject && o.APIVersion == "" && slices.Contains(policyKinds, o.Kind):
		return d.errorf("a %s without an apiVersion", o.Kind)
	}
	return nil
}

// parserSays is an error of the parser with the line of the file, its first one if there are several.
func (d document) parserSays(err error) string {
	says := err.Error()
	m := lineOf.FindStringSubmatch(says)
	if strings.Contains(says, "invalid map key") { // the parser does not say where
		is := func(key *node.Node) bool { return key.Kind != node.ScalarNode }
		return d.keyPlace(is).String() + ": a map stands as a key, as {{ }} without quotes does"
	}
	if m == nil {
		return d.errorf("%w", err).Error()
	}
	n, _ := strconv.Atoi(m[1])
	first, _, _ := strings.Cut(says[len(m[0]):], "\n")
	return bundle.Place{File: d.file, Line: d.line + n - 1}.String() + ": " + first
}

// find returns where the text at a path of the object's begins, and how its lines are written.
func (d document) find(path ...string) (*node.Node, bool) {
	doc, err := d.nodes()
	if err != nil || len(doc.Content) != 1 {
		return nil, false
	}
	if d.item >= 0 {
		path = append([]string{"items", strconv.Itoa(d.item)}, path...)
	}
	at := doc.Content[0]
	for _, step := range path {
		if at = child(at, step); at == nil {
			return nil, false
		}
	}
	return at, at.Kind == node.ScalarNode
}

// keyPlace is the place of the first key below a path of the object's that is the one, or that of the object.
func (d document) keyPlace(is func(key *node.Node) bool, path ...string) bundle.Place {
	if at, _ := d.find(path...); at != nil {
		if key := keyIn(at, is); key != nil {
			return bundle.Place{File: d.file, Line: d.line + key.Line - 1, Column: key.Column}
		}
	}
	return d.place()
}

// keyIn finds a key of a node, or else below it.
func keyIn(at *node.Node, is func(key *node.Node) bool) *node.Node {
	for i := 0; at.Kind == node.MappingNode && i < len(at.Content); i += 2 {
		if is(at.Content[i]) {
			return at.Content[i]
		}
	}
	for _, in := range at.Content {
		if key := keyIn(in, is); key != nil {
			return key
		}
	}
	return nil
}

// loader reads the document as YAML in which a key may stand twice.
func (d document) loader() (*node.Loader, error) {
	return node.NewLoader(strings.NewReader(d.text), node.WithUniqueKeys(false))
}

// nodes parses the document, if it is YAML.
func (d document) nodes() (*node.Node, error) {
	loader, err := d.loader()
	if err != nil {
		return nil, err
	}
	doc := &node.Node{}
	return doc, loader.Load(doc)
}

func child(at *node.Node, step string) *node.Node {
	if at.Kind == node.SequenceNode {
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(at.Content) {
			return at.Content[n]
		}
		return nil
	}
	for i := len(at.Content) - 2; at.Kind == node.MappingNode && i >= 0; i -= 2 { // the last of a key counts
		if at.Content[i].Value == step {
			return at.Content[i+1]
		}
	}
	return nil
}

// within returns the place in the file of a character of an expression: its line from 1 and its column from 0. The
// column is unknown where the file folds lines or escapes characters.
func (d document) within(line, column int, path ...string) bundle.Place {
	at, ok := d.find(path...)
	if !ok {
		return d.place()
	}
	first := d.line + at.Line - 1
	lines := strings.Split(d.all, "\n")
	out := bundle.Place{File: d.file, Line: first}
	switch {
	case at.Style&node.LiteralStyle != 0:
		out.Line = first + line
		if out.Line <= len(lines) {
			out.Column = column + 1 + indentation(lines[first:], strings.Split(at.Value, "\n"))
		}
	case at.Style&node.FoldedStyle != 0:
		out.Line, out.Column = unfold(lines[first:], at.Value, line, column)
		out.Line += first + 1
	case at.Style&(node.DoubleQuotedStyle|node.SingleQuotedStyle) != 0:
		if line == 1 && first <= len(lines) && strings.Contains(lines[first-1], at.Value) {
			out.Column = at.Column + 1 + column
		}
	case line == 1 && first <= len(lines) && strings.Contains(lines[first-1], at.Value):
		out.Column = at.Column + column
	}
	return out
}

// indentation is by how much a block is indented in the file.
func indentation(written, value []string) int {
	for i, v := range value {
		if v == "" || i >= len(written) {
			continue
		}
		if at := strings.Index(written[i], v); at >= 0 {
			return at
		}
	}
	return 0
}

// unfold finds a character of a folded block: how many lines below its first, and its column from 1. Folding keeps
// words and their order, so the same word is the one with as many words before it.
func unfold(written []string, value string, line, column int) (below, at int) {
	lines := strings.Split(value, "\n")
	if line < 1 || line > len(lines) {
		return 0, 0
	}
	before := []rune(lines[line-1])
	before = before[:min(column, len(before))]
	words := 0
	for _, l := range lines[:line-1] {
		words += len(strings.Fields(l))
	}
	start := strings.LastIndexAny(string(before), " \t") + 1
	words += len(strings.Fields(string(before)[:start]))
	for n, l := range written {
		fields := strings.Fields(l)
		if words >= len(fields) {
			words -= len(fields)
			continue
		}
		rest := l
		for range words {
			rest = strings.TrimLeft(rest, " \t")
			rest = rest[strings.IndexAny(rest+" ", " \t"):]
		}
		rest = strings.TrimLeft(rest, " \t")
		return n, len([]rune(l)) - len([]rune(rest)) + 1 + len([]rune(string(before)[start:]))
	}
	return 0, 0
}
