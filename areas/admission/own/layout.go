package own

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/parser"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/bundle"
)

// comparedSpec is the spec of a policy as it is compared: without layout and comments of what is written in a language,
// and without descriptions of parameters. Conditions that are those of another policy are in its order.
func comparedSpec(o, like *unstructured.Unstructured) any {
	spec, isMap := o.DeepCopy().Object["spec"].(tree)
	if !isMap {
		return o.Object["spec"]
	}
	switch k := o.GroupVersionKind(); {
	case isTemplate(k):
		crd, _, _ := unstructured.NestedMap(spec, "crd", "spec", "validation", "openAPIV3Schema") // or nothing
		undescribe(crd)
		if crd != nil {
			_ = unstructured.SetNestedMap(spec, crd, "crd", "spec", "validation", "openAPIV3Schema") // it was read there
		}
		compact(spec["targets"])
	case k.Group == group, k.Group == celGroup:
		compact(spec)
		if like != nil {
			other, _ := comparedSpec(like, nil).(tree)
			reorder(spec, other, "matchConditions")
		}
	}
	return spec
}

// comparedRule is likewise a rule of Kyverno's.
func comparedRule(rule, like tree) tree {
	out := (&unstructured.Unstructured{Object: rule}).DeepCopy().Object
	validate, _ := out["validate"].(tree)
	compact(out["celPreconditions"])
	compact(validate["cel"])
	for _, at := range []string{"match", "exclude"} {
		is, _ := out[at].(tree)
		was, _ := like[at].(tree)
		reorder(is, was, "any")
		reorder(is, was, "all")
	}
	return out
}

// reorder puts a list of maps into the order of another one that has the same members.
func reorder(in, like tree, list string) {
	is, _ := in[list].([]any)
	was, _ := like[list].([]any)
	if slices.Equal(texts(is), texts(was)) {
		for i := range is {
			is[i] = was[i]
		}
	}
}

// texts are the members of a list, in an order that is always the same.
func texts(list []any) (out []string) {
	for _, one := range list {
		text, _ := json.Marshal(one) // it was decoded from JSON
		out = append(out, string(text))
	}
	slices.Sort(out)
	return out
}

// undescribe takes the descriptions from a schema.
func undescribe(schema tree) {
	if schema == nil {
		return
	}
	if _, isText := schema["description"].(string); isText {
		delete(schema, "description")
	}
	for _, key := range []string{"properties", "patternProperties"} {
		of, _ := schema[key].(tree)
		for _, in := range of {
			below, _ := in.(tree)
			undescribe(below)
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		below, _ := schema[key].(tree)
		undescribe(below)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		of, _ := schema[key].([]any)
		for _, in := range of {
			below, _ := in.(tree)
			undescribe(below)
		}
	}
}

// compact takes layout and comments from the expressions and the Rego within a value.
func compact(value any) {
	switch v := value.(type) {
	case []any:
		for _, in := range v {
			compact(in)
		}
	case tree:
		for key, in := range v {
			switch text, isText := in.(string); {
			case isText && (key == "valueExpression" || key == "expression"):
				v[key] = compactCEL(text)
			case isText && key == "rego":
				v[key] = compactRego(text)
			case key == "libs":
				libs, _ := in.([]any)
				for i, lib := range libs {
					if text, isText := lib.(string); isText {
						libs[i] = compactRego(text)
					}
				}
			case key != "validations" && key != "expressions": // those are named by their text
				compact(in)
			}
		}
	}
}

// celWord is white space or a comment, a string, a word, or one other character of CEL.
var celWord = regexp.MustCompile(`(?s)(?:\s|//[^\n]*)+|"""(?:\\.|[^\\])*?"""|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\])*"` +
	`|'(?:\\.|[^'\\])*'|\w+|.`)

// compactCEL takes white space and comments from an expression, if it is parsed to the same without them.
func compactCEL(text string) string {
	var b strings.Builder
	gap := false
	for _, word := range celWord.FindAllString(text, -1) {
		if strings.TrimSpace(word) == "" || strings.HasPrefix(strings.TrimSpace(word), "//") {
			gap = true
			continue
		}
		if so := b.String(); gap && so != "" && celJoins.MatchString(so[len(so)-1:]) && celJoins.MatchString(word[:1]) {
			b.WriteByte(' ')
		}
		b.WriteString(word)
		gap = false
	}
	out := b.String()
	if was, is := parsed(text), parsed(out); out == text || was == "" || was != is {
		return text
	}
	return out
}

// celJoins matches what would become one word with another such.
var celJoins = regexp.MustCompile(`^\w`)

// celParser parses what Kubernetes and the engines do, without writing out macros.
var celParser = sync.OnceValues(func() (*parser.Parser, error) {
	return parser.NewParser(parser.EnableOptionalSyntax(true))
})

// parsed is what an expression is parsed to; empty: it is not valid.
func parsed(text string) string {
	p, err := celParser()
	if err != nil {
		return ""
	}
	is, errs := p.Parse(common.NewTextSource(text))
	if len(errs.GetErrors()) > 0 {
		return ""
	}
	is.Expr().RenumberIDs(func(int64) int64 { return 1 })
	pb, err := ast.ExprToProto(is.Expr())
	if err != nil {
		return ""
	}
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(pb)
	if err != nil {
		return ""
	}
	return string(out)
}

// compactRego takes comments, blank lines, and white space where a line begins and ends from Rego, and makes one blank
// of several. What may stand in comments for a reader, or may have expressions in strings, is left as it is.
func compactRego(text string) string {
	if strings.Contains(text, "METADATA") || strings.Contains(text, `$"`) || strings.Contains(text, "$`") {
		return text
	}
	var b strings.Builder
	gap := "\n"
	for _, word := range bundle.RegoWords(text) {
		switch {
		case word[0] == '#':
		case strings.Trim(word, " \t\r\n") != "":
			if b.Len() > 0 {
				b.WriteString(gap)
			}
			b.WriteString(word)
			gap = ""
		case strings.Contains(word, "\n"):
			gap = "\n"
		case gap == "":
			gap = " "
		}
	}
	return b.String()
}
