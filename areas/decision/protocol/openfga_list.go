package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sort"

	"tare/areas/decision/model"
	"tare/internal/jsonscan"
	"tare/internal/load"
)

// mostListed bounds the right list of a question. OpenFGA lists at most 1000 where it is not told otherwise.
const mostListed = 1024

// The lists of OpenFGA, as its paths call them: of the objects that a user has a relation to, and of the users that
// have one to an object.
const (
	listObjects = "list-objects"
	listUsers   = "list-users"
)

// listOf says which list the body of a question asks for.
func listOf(body []byte) (string, error) {
	var asks map[string]json.RawMessage
	if err := json.Unmarshal(body, &asks); err != nil {
		return "", errors.New("is no JSON object")
	}
	switch {
	case asks["user_filters"] != nil && asks["object"] != nil:
		return listUsers, nil
	case asks["type"] != nil && asks["user"] != nil:
		return listObjects, nil
	}
	return "", fmt.Errorf("asks for no list: want type, relation and user (%s), or object, relation and user_filters (%s)",
		listObjects, listUsers)
}

// validList says what is wrong with a question that wants a list.
func validList(q model.Question) error {
	if len(q.List.Has) > mostListed {
		return fmt.Errorf("wants a list of %d: at most %d can be compared", len(q.List.Has), mostListed)
	}
	_, err := listOf(q.Body)
	return err
}

// listOpenFGA renders the request for a list.
func listOpenFGA(o OpenFGA, q model.Question) (call, error) {
	of, err := listOf(q.Body)
	if err != nil {
		return call{}, fmt.Errorf("the body of %q %w", q.Name, err)
	}
	want := slices.Compact(slices.Sorted(slices.Values(q.List.Has)))
	r, err := posted("/stores/"+url.PathEscape(o.Store)+"/"+of, jsonMedia, q.Body, nil)
	return call{
		request: r, expect: fmt.Sprintf("200 with the right list, of %d", len(want)), judge: wantsList(of, want),
		listed: func(body []byte) []string { return listed(body, of) },
	}, err
}

// wantsList judges answers by the right list, which is sorted.
func wantsList(of string, want []string) judge {
	return ofOpenFGA(func(body []byte) (load.Outcome, Verdict, model.Decision) {
		if v := readList(body, of, want); v != Fine {
			return load.Wrong, v, model.None
		}
		return load.OK, Fine, model.Permit
	})
}

// readList compares the list that an answer holds with the right one. What stands twice in it counts once.
func readList(body []byte, of string, want []string) Verdict {
	raw, ok := jsonscan.Member(body, memberOf(of))
	switch {
	case !ok:
		return malformed(body)
	case raw == nil:
		return NoDecision
	}
	var seen [mostListed / 64]uint64
	var buf [512]byte
	found, more := 0, false
	list := jsonscan.Array(raw)
	for {
		_, element, ok := list.Next()
		if !ok {
			break
		}
		name := readName(buf[:0], of, element)
		if name == nil {
			return NotJSON
		}
		i := placeOf(name, want)
		switch {
		case i < 0:
			more = true
		case seen[i/64]&(1<<(i%64)) == 0:
			seen[i/64] |= 1 << (i % 64)
			found++
		}
	}
	switch {
	case !list.Whole():
		return NotJSON
	case more:
		return ListHasMore
	case found < len(want):
		return ListLacks
	}
	return Fine
}

// memberOf is the member of an answer that holds the list.
func memberOf(of string) string {
	if of == listUsers {
		return "users"
	}
	return "objects"
}

// readName reads the name of an element of a list; nil: it has none.
func readName(dst []byte, of string, element []byte) []byte {
	if of == listUsers {
		return readUser(dst, element)
	}
	return readObject(dst, element)
}

// listed are the names that a list holds which readList has read, sorted and each once.
func listed(body []byte, of string) []string {
	raw, _ := jsonscan.Member(body, memberOf(of))
	list, out := jsonscan.Array(raw), []string{}
	for {
		_, element, ok := list.Next()
		if !ok {
			slices.Sort(out)
			return slices.Compact(out)
		}
		out = append(out, string(readName(nil, of, element)))
	}
}

// placeOf is where a name stands in a sorted list; −1: nowhere.
func placeOf(name []byte, in []string) int {
	i := sort.Search(len(in), func(i int) bool { return in[i] >= string(name) })
	if i == len(in) || in[i] != string(name) {
		return -1
	}
	return i
}

// readObject reads the name of an object, TYPE:ID. It returns nil for anything else.
func readObject(dst, raw []byte) []byte {
	text, ok := plainText(raw)
	if !ok {
		return nil
	}
	return append(dst, text...)
}

// readUser reads a user, and names it as a relationship does: TYPE:ID, TYPE:ID#RELATION or TYPE:*. It returns nil for
// anything else.
func readUser(dst, raw []byte) []byte {
	is := jsonscan.Object(raw)
	kind, value, ok := is.Next()
	if !ok {
		return nil
	}
	if _, _, more := is.Next(); more || !is.Whole() {
		return nil
	}
	of, ok := textOf(value, "type")
	if !ok {
		return nil
	}
	dst = append(append(dst, of...), ':')
	if jsonscan.Is(kind, "wildcard") {
		return append(dst, '*')
	}
	id, ok := textOf(value, "id")
	if !ok {
		return nil
	}
	dst = append(dst, id...)
	switch {
	case jsonscan.Is(kind, "object"):
		return dst
	case jsonscan.Is(kind, "userset"):
		if relation, ok := textOf(value, "relation"); ok {
			return append(append(dst, '#'), relation...)
		}
	}
	return nil
}

// textOf is the text that a member of an object holds.
func textOf(object []byte, member string) (text []byte, ok bool) {
	raw, _ := jsonscan.Member(object, member)
	return plainText(raw)
}

// plainText is the text of a string. It allocates for one with escapes, which few names have.
func plainText(raw []byte) (text []byte, ok bool) {
	if text = jsonscan.Text(raw); text == nil && len(raw) > 0 && raw[0] == '"' {
		var decoded string
		if json.Unmarshal(raw, &decoded) == nil {
			text = []byte(decoded)
		}
	}
	return text, len(text) > 0
}
