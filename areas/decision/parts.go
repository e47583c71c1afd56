package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	strict "sigs.k8s.io/json"

	"tare/areas/bundle"
	"tare/areas/decision/cedarset"
	"tare/areas/decision/engine"
	"tare/areas/decision/fga"
	"tare/areas/decision/replica"
	"tare/internal/kit"
)

// A part is a policy, a rule, or data that policies decide by: its name for people, and the sum of what it says,
// without what makes no difference, such as comments.
type part struct {
	name string
	says sum
}

// A sum stands for texts that are only compared: names would be written out in each part in which they have a meaning.
type sum [sha256.Size]byte

const (
	// mostParts bounds the parts that are told apart, and mostOfName the characters of their names.
	mostParts, mostOfName = 100_000, 200
	theModel, thePolicies = "the model", "the policies"
)

// partOf is what is said by some texts.
func partOf(name string, says ...string) part {
	g := growing{name, sha256.New()}
	for _, text := range says {
		g.add(text)
	}
	return g.part()
}

// sumOf is that of some texts.
func sumOf(says ...string) sum { return partOf("", says...).says }

// A growing is a part of which more is read.
type growing struct {
	name string
	says hash.Hash
}

func (g *growing) add(text string) {
	_, _ = fmt.Fprintf(g.says, "%d:%s", len(text), text) // a hash takes all
}

func (g *growing) part() (out part) {
	out.name = clipped(g.name)
	g.says.Sum(out.says[:0])
	return out
}

// clipped is a name for people.
func clipped(name string) string {
	return kit.Clipped(name[:min(len(name), utf8.UTFMax*(mostOfName+1))], mostOfName)
}

// short is a text, or one for its sum, which is longer than any text that stays.
func short(text string) string {
	const most = 2 * sha256.Size
	if len(text) <= most {
		return text
	}
	is := sumOf(text)
	return ":" + hex.EncodeToString(is[:])
}

// partsOf are those of a bundle.
func partsOf(kind engine.Kind, at string) (out []part, err error) {
	switch kind {
	case engine.Cedar:
		return cedarParts(at)
	case engine.OPA:
		tests := newRegoTests()
		err = engine.EachOfOPA(at, func(name string, text []byte) error {
			out = append(out, opaParts(name, text, tests)...)
			return nil
		})
		err = errors.Join(err, engine.EachBesideOPA(at, func(name string, text []byte) error {
			out = append(out, partOf(name, "beside", path.Dir(name), canonical(inJSON(name, text), false)))
			return nil
		}))
		out = slices.Concat(out, tests.inForce(), tests.whole())
	case engine.OpenFGA:
		return storeParts(at)
	case engine.ATT, engine.AuthzForce:
		err = bundle.Each(at, func(_ string, text []byte) error {
			out, err = xacmlParts(text)
			return err
		})
	case engine.PDPX:
	}
	return out, err
}

// cedarParts are the policies, without their annotations, and what is left aside, the entities, and the schema, which
// says of what types the values of a request are. All lists of entities are sets.
func cedarParts(at string) (out []part, err error) {
	set, err := cedarset.Read(at)
	if err != nil {
		return nil, err
	}
	for id, policy := range set.Policies.All() {
		text, err := policy.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = append(out, partOf(set.Name(id), canonical(text, false, "annotations")))
	}
	asides, err := set.Asides()
	if err != nil {
		return nil, err
	}
	for _, a := range asides {
		out = append(out, partOf(a.Name, "aside", quoted(a.Slots...), canonical(a.JSON, false, "annotations")))
	}
	for id, entity := range set.Entities {
		text, err := json.Marshal(entity)
		if err != nil {
			return nil, err
		}
		out = append(out, partOf(id.String(), canonical(text, true)))
	}
	return append(out, partOf("the schema", set.Schema())), nil
}

// canonical is JSON with its fields in order and without some of them, and, where lists are sets, with those in order.
// A text that is not JSON, is too long to be read for this, or holds a key twice in an object, of which readers differ
// in what they take, stays as it is.
func canonical(text []byte, sets bool, without ...string) string {
	if len(text) > replica.MostYAML {
		return string(text)
	}
	var v any
	if twice, err := strict.UnmarshalStrict(text, &v, strict.DisallowDuplicateFields); err != nil || len(twice) > 0 {
		return string(text)
	}
	v = nil
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // the other decoder rounds
	if d.Decode(&v) != nil {
		return string(text)
	}
	if fields, ok := v.(map[string]any); ok {
		for _, name := range without {
			delete(fields, name)
		}
	}
	if sets {
		sortLists(v)
	}
	out, _ := json.Marshal(v) // it was decoded from JSON
	return string(out)
}

func sortLists(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, in := range v {
			sortLists(in)
		}
	case []any:
		for _, in := range v {
			sortLists(in)
		}
		slices.SortFunc(v, func(a, b any) int {
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			return bytes.Compare(x, y)
		})
	}
}

// opaParts are those of a file that OPA loads, but for tests. Signatures and a revision decide nothing.
func opaParts(name string, text []byte, tests *regoTests) []part {
	base := path.Base(name)
	switch path.Ext(base) {
	case ".rego":
		return regoParts(name, string(text), tests)
	case ".yaml", ".yml":
		text = inJSON(name, text)
	}
	switch {
	case base == ".signatures.json":
		return nil
	case base == ".manifest" && isPlain(text):
		return []part{partOf(name, name, canonical(text, false, "revision"))}
	case base == ".manifest":
		tests.versions = true
	case strings.HasPrefix(base, "data."):
		return []part{partOf(name, path.Dir(name), canonical(text, false))} // OPA puts it at the place of its folder
	}
	return []part{partOf(name, name, string(text))}
}

// inJSON is what a file holds in JSON, if it is YAML that is short enough to be read for this.
func inJSON(name string, text []byte) []byte {
	if isYAML := path.Ext(name) != ".json"; isYAML && len(text) <= replica.MostYAML {
		if as, err := replica.JSON(text); err == nil {
			return as
		}
	}
	return text
}

// isPlain reports a manifest that says nothing about single files, such as their versions of Rego.
func isPlain(manifest []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(manifest, &fields) != nil {
		return false
	}
	for _, name := range []string{"revision", "roots", "wasm", "rego_version", "metadata"} {
		delete(fields, name)
	}
	return len(fields) == 0
}

// storeParts are the types, relations and conditions of a model, and the relationships.
func storeParts(at string) (out []part, err error) {
	store, err := fga.Read(at)
	if err != nil {
		return nil, err
	}
	for _, t := range store.Tuples {
		var key struct{ User, Relation, Object string }
		if err := json.Unmarshal(t.Key, &key); err != nil {
			return nil, err
		}
		out = append(out, partOf(key.User+" "+key.Relation+" "+key.Object, canonical(t.Key, false)))
	}
	for _, f := range store.Files {
		out = append(out, modelParts(f.Text)...)
	}
	if store.Model == nil {
		return out, nil
	}
	var model struct {
		ID      string `json:"id"`
		Version string `json:"schema_version"`
		Types   []struct {
			Type      string                     `json:"type"`
			Relations map[string]json.RawMessage `json:"relations"`
			Metadata  struct {
				Relations map[string]json.RawMessage `json:"relations"`
				Module    json.RawMessage            `json:"module"`
				Source    json.RawMessage            `json:"source_info"`
			} `json:"metadata"`
		} `json:"type_definitions"`
		Conditions map[string]json.RawMessage `json:"conditions"`
	}
	d := json.NewDecoder(bytes.NewReader(store.Model))
	d.DisallowUnknownFields()
	if known := d.Decode(&model) == nil; !known { // OpenFGA knows other names of fields
		return append(out, partOf(theModel, canonical(store.Model, false))), nil
	}
	for _, t := range model.Types {
		of, name := short(t.Type), clipped(t.Type)
		out = append(out, partOf("type "+name, "type", of))
		for relation, text := range t.Relations {
			by := canonical(t.Metadata.Relations[relation], false)
			out = append(out, partOf(name+"#"+relation, "relation", of, relation, canonical(text, false), by))
		}
	}
	for name, text := range model.Conditions {
		out = append(out, partOf("condition "+name, "condition", name, canonical(text, false)))
	}
	return out, nil
}

var bracketsApart = strings.NewReplacer(",", " , ", "[", " [ ", "]", " ] ", "(", " ( ", ")", " ) ", ":", " : ")

// The lines of a model in OpenFGA's language, with single spaces between what they consist of.
var (
	modelLine     = regexp.MustCompile(`^(?:model|schema [0-9.]+|module \S+|relations)$`)
	typeLine      = regexp.MustCompile(`^(?:extend )?type ([^\s:()[\]]+)$`)
	defineLine    = regexp.MustCompile(`^define ([^\s:()[\]]+) : `)
	conditionLine = regexp.MustCompile(`^condition ([^\s:()[\]]+) \( `)
)

// modelParts are those of a model in OpenFGA's language. If a line is not surely understood, the whole model is one
// part. The lines of conditions stay as they are: they hold strings.
func modelParts(text string) (out []part) {
	whole := []part{partOf(theModel, text)}
	if strings.Contains(text, `"""`) || strings.Contains(text, "'''") {
		return whole // a line could be one of a string
	}
	of, name, condition, closed := "", "", false, true // closed: the brackets of what the last line belongs to
	var all []*growing
	add := func(name string, says ...string) {
		all = append(all, &growing{name, sha256.New()})
		for _, text := range says {
			all[len(all)-1].add(text)
		}
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(" "+line, " #") // OpenFGA cuts it before it reads a line, of conditions, too
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		plain := strings.Join(strings.Fields(bracketsApart.Replace(line)), " ")
		begins := typeLine.MatchString(plain) || conditionLine.MatchString(plain)
		if condition = condition && (!closed || !begins); condition {
			all[len(all)-1].add(line)
			closed = strings.HasSuffix(plain, "}")
			continue
		}
		switch {
		case strings.Contains(line, "\r"), len(all) > mostParts:
			return whole
		case !closed:
			all[len(all)-1].add(plain)
			closed = strings.Contains(plain, "]")
		case conditionLine.MatchString(plain):
			add("condition "+conditionLine.FindStringSubmatch(plain)[1], line)
			condition, closed = true, strings.HasSuffix(plain, "}")
		case typeLine.MatchString(plain):
			of = typeLine.FindStringSubmatch(plain)[1]
			add("type "+of, plain)
			of, name = short(of), clipped(of)
		case of != "" && defineLine.MatchString(plain):
			add(name+"#"+defineLine.FindStringSubmatch(plain)[1], of, plain)
			closed = strings.Count(plain, "[") == strings.Count(plain, "]")
		case !modelLine.MatchString(plain):
			return whole
		}
	}
	for _, g := range all {
		out = append(out, g.part())
	}
	return out
}

// xacmlParts are the policies and sets of policies of a file, each with the places of those in it: order can decide.
func xacmlParts(text []byte) (out []part, err error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	spaces := map[string]string{} // in short: a name of one can stand for much
	space := func(name string) string {
		if _, there := spaces[name]; !there {
			spaces[name] = short(name)
		}
		return spaces[name]
	}
	var open []*growing
	element, ids := "", map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		said := ""
		switch t := token.(type) {
		case xml.StartElement:
			was := element
			if element = t.Name.Local; element == "Description" && (isPolicy(was) || was == "Rule") {
				if err := d.Skip(); err != nil {
					return nil, err
				}
				continue
			}
			var attributes []string
			id := ""
			for _, a := range t.Attr {
				if a.Name.Local == element+"Id" {
					id = a.Value
				}
				if a.Name.Local != "xmlns" {
					attributes = append(attributes, quoted(space(a.Name.Space), a.Name.Local, a.Value))
				}
			}
			slices.Sort(attributes)
			if isPolicy(element) {
				if n := len(open); n > 0 {
					open[n-1].add(quoted("in it", id))
				}
				if open = append(open, &growing{id, sha256.New()}); len(out)+len(open) > mostParts {
					return []part{partOf(thePolicies, string(text))}, nil
				}
			}
			said = quoted(append([]string{space(t.Name.Space), element}, attributes...)...)
		case xml.CharData:
			if element == "AttributeValue" || len(bytes.TrimSpace(t)) > 0 {
				said = quoted(string(t))
			}
		case xml.EndElement:
			element, said = "", "/"
		}
		if n := len(open); n > 0 {
			if said != "" {
				open[n-1].add(said)
			}
			if end, ok := token.(xml.EndElement); ok && isPolicy(end.Name.Local) {
				id, is := open[n-1].name, open[n-1].part()
				out, open = append(out, is), open[:n-1]
				if ids[id] && n > 1 {
					open[n-2].add(string(is.says[:])) // two have this name: their order is compared
				}
				ids[id] = true
			}
		}
	}
}

func isPolicy(element string) bool { return element == "Policy" || element == "PolicySet" }

// quoted is a list of texts in an unambiguous form.
func quoted(texts ...string) string {
	out, _ := json.Marshal(texts) // of strings it does not fail
	return string(out)
}
