package mechanism

import (
	"bytes"
	"strconv"
)

// status holds the needed fields of a Status: texts as written, with their escapes.
type status struct {
	kind, status, message []byte
	code                  int
}

// readStatus reads a Status from a JSON object; ok is false if it cannot. It does not allocate, and does not validate:
// nested values may be malformed.
func readStatus(body []byte) (s status, ok bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(body), []byte("{"))
	for ok {
		var name, value []byte
		if name, rest, ok = readString(rest); !ok {
			return s, false
		}
		if rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, blanks), []byte(":")); !ok {
			return s, false
		}
		if value, rest, ok = readValue(rest); !ok || !s.set(name, value) {
			return s, false
		}
		rest = bytes.TrimLeft(rest, blanks)
		if bytes.Equal(rest, []byte("}")) {
			return s, true
		}
		rest, ok = bytes.CutPrefix(rest, []byte(","))
	}
	return s, false
}

const blanks = " \t\r\n"

// set sets a needed field; ok is false if its value has the wrong type.
func (s *status) set(name, value []byte) (ok bool) {
	var text *[]byte
	switch string(name) {
	case "code":
		code, err := strconv.ParseUint(string(value), 10, 16)
		s.code = int(code) //nolint:gosec // of 16 bits
		return err == nil
	case "kind":
		text = &s.kind
	case "status":
		text = &s.status
	case "message":
		text = &s.message
	default:
		return true
	}
	read, rest, ok := readString(value)
	*text = read
	return ok && len(rest) == 0
}

// readString reads a JSON string after blanks, and returns the text between its quotes and the rest.
func readString(text []byte) (inside, rest []byte, ok bool) {
	text, ok = bytes.CutPrefix(bytes.TrimLeft(text, blanks), []byte(`"`))
	for i := 0; ok && i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i], text[i+1:], true
		}
	}
	return nil, nil, false
}

// readValue reads any JSON value after blanks, to its end.
func readValue(text []byte) (value, rest []byte, ok bool) {
	text = bytes.TrimLeft(text, blanks)
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			_, after, closed := readString(text[i:])
			if !closed {
				return nil, nil, false
			}
			i = len(text) - len(after) - 1
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return bytes.TrimRight(text[:i], blanks), text[i:], i > 0
			}
			if text[i] != ',' {
				depth--
			}
		}
	}
	return nil, nil, false
}
