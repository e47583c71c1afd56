package own

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ErrLarge says that an object is too large to be compared: a server may answer anything, a thousand times.
var ErrLarge = fmt.Errorf("the object that was answered has more than %d KiB", mostCompared>>10)

// mostCompared bounds an object that is compared, in bytes.
const mostCompared = 64 << 10

// A Plain is an object as the API server answers it where no policy changes it.
type Plain struct {
	namespace string
	shown     func(value string) bool // nil: all values may be shown
	salt      []byte                  // of those that may not
	fields    map[string]string       // by their paths
	shifts    map[string]bool         // paths whose values differ from answer to answer
	private   bool                    // values are nobody's business
}

// NewPlain takes two answers to one request in a namespace, whose name is not compared: each treatment has its own.
func NewPlain(namespace string, first, second []byte) (*Plain, error) {
	a, private, err := fieldsOf(namespace, first)
	if err != nil {
		return nil, err
	}
	b, _, err := fieldsOf(namespace, second)
	if err != nil {
		return nil, err
	}
	out := &Plain{namespace: namespace, fields: a, shifts: map[string]bool{}, private: private}
	for _, path := range different(a, b) {
		out.shifts[path] = true
	}
	return out, nil
}

// Hiding is the same object, of whose changes only texts are shown that shown allows: a policy may put into an object
// what is somebody's secret. For the others stands a number that is the same for one text and one salt.
func (p *Plain) Hiding(shown func(text string) bool, salt []byte) *Plain {
	out := *p
	out.shown, out.salt = shown, salt
	return &out
}

// hidden stands for a value that may not be shown; empty: it may.
func (p *Plain) hidden(value string) string {
	var text string
	if p.shown == nil || json.Unmarshal([]byte(value), &text) != nil || p.shown(text) {
		return ""
	}
	sum := hmac.New(sha256.New, p.salt)
	sum.Write([]byte(text))
	return fmt.Sprintf("changed (#%x)", sum.Sum(nil)[:4])
}

// In is the same object in another namespace.
func (p *Plain) In(namespace string) *Plain {
	out := *p
	out.namespace = namespace
	return &out
}

// Changes are what became of an object's fields, by their paths: `= "a"`, "removed".
type Changes map[string]string

// varies is what became of a field whose value differs from request to request.
const varies = "varies"

// mostShown bounds a value that is shown.
const mostShown = 60

// Changes says in what an answer differs from the plain one. Values of Secrets are left out.
func (p *Plain) Changes(answer []byte) (Changes, error) {
	is, _, err := fieldsOf(p.namespace, answer)
	if err != nil {
		return nil, err
	}
	out := Changes{}
	for _, path := range different(p.fields, is) {
		value, there := is[path]
		shown := []rune(value)
		switch {
		case p.shifts[path]:
		case !there:
			out[path] = "removed"
		case p.private && !strings.HasPrefix(path, "metadata"):
			out[path] = "changed"
		case p.hidden(value) != "":
			out[path] = p.hidden(value)
		case len(shown) > mostShown:
			out[path] = "= " + string(shown[:mostShown]) + "…"
		default:
			out[path] = "= " + value
		}
	}
	return out, nil
}

// Settled are the changes that another answer to the same request shows, too.
func (c Changes) Settled(other Changes) Changes {
	out := Changes{}
	for path, is := range c {
		switch was, both := other[path]; {
		case both && was != is:
			out[path] = varies
		case both:
			out[path] = is
		}
	}
	return out
}

// Missing are those of the changes that another answer does not show.
func (c Changes) Missing(other Changes) Changes {
	out := Changes{}
	for path, is := range c {
		if was, both := other[path]; !both || is != varies && was != is {
			out[path] = is
		}
	}
	return out
}

// Marks are parts of an object's JSON, as the API server writes it, that show changes: each a key with its value. It
// leaves out what is shown in part only, and what has no key.
func (c Changes) Marks() (out []string) {
	for _, path := range slices.Sorted(maps.Keys(c)) {
		value, ok := strings.CutPrefix(c[path], "= ")
		key := path[strings.LastIndexByte(path, '.')+1:]
		if at := strings.LastIndex(path, `."`); at >= 0 && strings.HasSuffix(path, `"`) {
			unquoted, err := strconv.Unquote(path[at+1:])
			key, ok = unquoted, ok && err == nil
		}
		if !ok || strings.HasSuffix(key, "]") || strings.HasSuffix(value, "…") || strings.Contains(value, anyNamespace) {
			continue
		}
		name, err := json.Marshal(key)
		if err == nil {
			out = append(out, string(name)+":"+value)
		}
	}
	return out
}

// mostLines bounds the changes of one object that are told.
const mostLines = 200

// Lines are the changes in words, in order.
func (c Changes) Lines() (out []string) {
	for n, path := range slices.Sorted(maps.Keys(c)) {
		if n == mostLines {
			return append(out, fmt.Sprintf("and %d more", len(c)-n))
		}
		out = append(out, path+" "+c[path])
	}
	return out
}

// different are the paths at which two objects differ, in order.
func different(a, b map[string]string) (out []string) {
	for path, value := range a {
		if other, there := b[path]; !there || other != value {
			out = append(out, path)
		}
	}
	for path := range b {
		if _, there := a[path]; !there {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// anyNamespace stands for the name of the run's namespace.
const anyNamespace = "NAMESPACE"

// token is the name of the volume with a pod's token, which the API server makes up anew for each request.
var token = regexp.MustCompile(`kube-api-access-[a-z0-9]{5}\b`)

// fieldsOf returns the fields of an object by their paths, without those that the API server makes up.
func fieldsOf(namespace string, answer []byte) (fields map[string]string, private bool, err error) {
	if len(answer) > mostCompared {
		return nil, false, ErrLarge
	}
	var o tree
	answer = bytes.ReplaceAll(token.ReplaceAll(answer, []byte("kube-api-access")), []byte(namespace), []byte(anyNamespace))
	if err := json.Unmarshal(answer, &o); err != nil {
		return nil, false, fmt.Errorf("read the object that was answered: %w", err)
	}
	kind, _ := o["kind"].(string)
	if kind == "" || kind == "Status" {
		return nil, false, errors.New("the answer holds no object")
	}
	if m, ok := o["metadata"].(tree); ok {
		for _, made := range []string{
			"uid", "creationTimestamp", "managedFields", "resourceVersion", "generation", "selfLink",
		} {
			delete(m, made)
		}
	}
	delete(o, "status")
	fields = map[string]string{}
	flatten(fields, "", o)
	return fields, kind == "Secret", nil
}

// flatten adds the fields of a value by their paths. Items of a list have their names in it, if they have any.
func flatten(into map[string]string, path string, value any) {
	switch v := value.(type) {
	case tree:
		if len(v) == 0 && path != "" {
			into[path] = "{}"
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			flatten(into, strings.TrimPrefix(path+"."+quoted(key), "."), v[key])
		}
	case []any:
		if len(v) == 0 {
			into[path] = "[]"
		}
		seen := map[string]int{}
		for i, item := range v {
			at := strconv.Itoa(i)
			if o, ok := item.(tree); ok {
				if name, ok := o["name"].(string); ok {
					at = name
					if seen[name]++; seen[name] > 1 {
						at += "#" + strconv.Itoa(seen[name])
					}
				}
			}
			flatten(into, path+"["+at+"]", item)
		}
	default:
		text, err := json.Marshal(v)
		if err != nil { // it was decoded from JSON
			text = fmt.Append(nil, v)
		}
		into[path] = string(text)
	}
}

// quoted is a key as a part of a path.
func quoted(key string) string {
	if strings.ContainsAny(key, `."[] `) {
		return strconv.Quote(key)
	}
	return key
}
