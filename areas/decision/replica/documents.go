package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// The names of the files of a bundle of OPA that hold data: those of a folder stand in the data under its path.
const (
	dataJSON = "data.json"
	dataYAML = "data.yaml"
	dataYML  = "data.yml"
)

// signatures is the file in which a bundle's files have their sums.
const signatures = ".signatures.json"

// Documents are the data of a bundle of OPA.
type Documents struct {
	files map[string]any // by the file's name
	// what grows, in the order of Of
	grown []*collection
	names map[string]bool
}

// A collection is a map or a list in the data.
type collection struct {
	place string
	file  string
	path  []string // within the file
	value any
	// naming is where an entry of a list has its name; empty: the entry is one.
	naming []string
}

// entries is how many there are.
func (c *collection) entries() int {
	if list, ok := c.value.([]any); ok {
		return len(list)
	}
	return len(c.value.(map[string]any)) //nolint:forcetypeassert // find takes no other
}

// ReadDocuments finds what grows in the data of a bundle, whose files each gives.
func (d *Data) ReadDocuments(each func(do func(name string, text []byte) error) error) (*Documents, error) {
	if len(d.Of) == 0 {
		return nil, errors.New("of: say what grows in the bundle's data, such as users or bindings[].user")
	}
	out := &Documents{files: map[string]any{}, names: map[string]bool{}}
	if err := each(out.read); err != nil {
		return nil, err
	}
	bytes := 0
	for _, place := range d.Of {
		c, err := out.find(place)
		if err == nil {
			err = out.name(c)
		}
		if err != nil {
			return nil, fmt.Errorf("of: %s: %w", place, err)
		}
		if out.has(c) {
			continue // another name of the same entries
		}
		if i := slices.IndexFunc(out.grown, c.meets); i >= 0 {
			return nil, fmt.Errorf("of: %s: it stands in %s, or that in it, and only one of them can grow", place,
				out.grown[i].place)
		}
		text, err := json.Marshal(c.value)
		if err != nil {
			return nil, fmt.Errorf("of: %s: %w", place, err)
		}
		out.grown = append(out.grown, c)
		bytes += len(text)
	}
	return out, d.Check(out.Entries(), bytes)
}

// has reports whether a collection grows already.
func (o *Documents) has(c *collection) bool {
	return slices.ContainsFunc(o.grown, func(is *collection) bool {
		return is.file == c.file && slices.Equal(is.path, c.path)
	})
}

// meets reports whether one of two collections stands in the other.
func (c *collection) meets(other *collection) bool {
	n := min(len(c.path), len(other.path))
	return c.file == other.file && slices.Equal(c.path[:n], other.path[:n])
}

// read keeps the data of a file.
func (o *Documents) read(name string, text []byte) (err error) {
	switch path.Base(name) {
	case signatures:
		return fmt.Errorf("%s: the bundle is signed: data that have grown would not be what was signed", name)
	case dataYAML, dataYML:
		if len(text) > MostYAML {
			return fmt.Errorf("%s: more than %d MiB: write it as %s", name, MostYAML>>20, dataJSON)
		}
		text, err = JSON(text)
	case dataJSON:
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	var all any
	if err := in.Decode(&all); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	o.files[name] = all
	return nil
}

// find finds what stands at a place.
func (o *Documents) find(place string) (*collection, error) {
	at, naming, list := strings.Cut(place, "[]")
	naming, named := strings.CutPrefix(naming, ".")
	if at == "" || list && naming != "" && !named || named && naming == "" {
		return nil, errors.New("want a place in the data, such as users, rbac/bindings[].user or admins[]")
	}
	for _, file := range slices.Sorted(maps.Keys(o.files)) {
		rest, value := strings.Split(at, "/"), o.files[file]
		if folder := path.Dir(file); folder != "." {
			above := strings.Split(folder, "/")
			if len(rest) <= len(above) || !slices.Equal(rest[:len(above)], above) {
				continue
			}
			rest = rest[len(above):]
		}
		value, ok := inside(value, rest)
		if !ok {
			continue
		}
		c := &collection{place: place, file: file, path: rest, value: value}
		if naming != "" {
			c.naming = strings.Split(naming, "/")
		}
		return c, c.check(list)
	}
	return nil, errors.New("the bundle's data have no such place")
}

// check says what is wrong with what stands at a place.
func (c *collection) check(list bool) error {
	switch c.value.(type) {
	case map[string]any:
		if list {
			return errors.New("it is a map, whose keys are its names: leave out []")
		}
	case []any:
		if !list {
			return errors.New("it is a list: say what tells its entries apart, such as [].user, or [] where they are names")
		}
	default:
		return errors.New("it is neither a map nor a list")
	}
	return nil
}

// inside is what stands at a path in a value.
func inside(value any, path []string) (any, bool) {
	for _, key := range path {
		in, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = in[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

// name adds the names of a collection's entries.
func (o *Documents) name(c *collection) error {
	if entries, ok := c.value.(map[string]any); ok {
		for key := range entries {
			o.names[key] = true
		}
		return nil
	}
	for i, entry := range c.value.([]any) { //nolint:forcetypeassert // find takes no other
		value, _ := inside(entry, c.naming)
		name, ok := value.(string)
		if !ok {
			return fmt.Errorf("its entry %d has no name there", i)
		}
		o.names[name] = true
	}
	return nil
}

// Entries is how many entries the collections have as they are.
func (o *Documents) Entries() (n int) {
	for _, c := range o.grown {
		n += c.entries()
	}
	return n
}

// Grow returns the files that are others for the copies, by their names.
func (o *Documents) Grow(times int) (map[string][]byte, error) {
	for _, c := range o.grown {
		text, err := o.copies(c, times)
		if err != nil {
			return nil, err
		}
		o.files[c.file] = replaced(o.files[c.file], c.path, json.RawMessage(text))
	}
	out := map[string][]byte{}
	for _, c := range o.grown {
		if out[c.file] != nil {
			continue
		}
		text, err := json.Marshal(o.files[c.file])
		if err != nil {
			return nil, err
		}
		if path.Base(c.file) != dataJSON && len(text) > MostYAML {
			return nil, fmt.Errorf("%s: it would be more than %d MiB of YAML: write it as %s", c.file, MostYAML>>20, dataJSON)
		}
		out[c.file] = text
	}
	return out, nil
}

// replaced is a value with another at a path.
func replaced(value any, path []string, by json.RawMessage) any {
	if len(path) == 0 {
		return by
	}
	in := maps.Clone(value.(map[string]any)) //nolint:forcetypeassert // find went the same way
	in[path[0]] = replaced(in[path[0]], path[1:], by)
	return in
}

// copies is a collection as JSON, with its copies. The original stands first.
func (o *Documents) copies(c *collection, times int) ([]byte, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	entries, isMap := c.value.(map[string]any)
	keys := slices.Sorted(maps.Keys(entries))
	list, _ := c.value.([]any)
	brackets := "[]"
	if isMap {
		brackets = "{}"
	}
	out.WriteByte(brackets[0])
	for k := range times {
		for i := range max(len(keys), len(list)) {
			if k+i > 0 {
				out.WriteByte(',')
			}
			var value any
			if isMap {
				name := keys[i]
				if k > 0 {
					name = Name(name, k+1)
				}
				if _, ok := entries[name]; ok && k > 0 {
					return nil, fmt.Errorf("of: %s: %s is there, and a copy would be called so", c.place, name)
				}
				if err := to.Encode(name); err != nil {
					return nil, err
				}
				out.WriteByte(':')
				value = entries[keys[i]]
			} else {
				value = list[i]
			}
			if err := to.Encode(o.renamed(value, k+1)); err != nil {
				return nil, err
			}
		}
	}
	out.WriteByte(brackets[1])
	return out.Bytes(), nil
}

// renamed is a value as a copy has it, of which the first is the original: all that is a name of an entry is called as
// that entry's copy is.
func (o *Documents) renamed(value any, number int) any {
	if number == 1 {
		return value
	}
	switch v := value.(type) {
	case string:
		if o.names[v] {
			return Name(v, number)
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = o.renamed(v[i], number)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, in := range v {
			if o.names[key] {
				key = Name(key, number)
			}
			out[key] = o.renamed(in, number)
		}
		return out
	}
	return value
}
