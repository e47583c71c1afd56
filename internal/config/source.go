package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"tare/area"
	"tare/internal/design"
)

// Limits on the input: far above any experiment, and far below what could take too long.
const (
	maxSource = 256 << 10 // bytes
	maxDepth  = 32        // nesting
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// A fault is an error of a source as a whole.
type fault struct {
	line, column int
	message      string
}

// readSource parses one YAML document. Exactly one of node and faults is set.
func readSource(data []byte) (*yaml.Node, []fault) {
	data = bytes.TrimPrefix(data, byteOrderMark)
	if f := checkText(data); f != nil {
		return nil, []fault{*f}
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false),
		yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		return nil, []fault{{1, 1, err.Error()}}
	}
	doc, err := nextDocument(loader)
	if errors.Is(err, io.EOF) {
		return nil, []fault{{1, 1, "the file holds no experiment"}}
	}
	if err != nil {
		return nil, []fault{syntaxFault(data, err)}
	}
	root := doc.Content[0]
	if root.Tag == "!!null" && root.Value == "" {
		return nil, []fault{{1, 1, "the file holds no experiment"}}
	}
	next, err := nextDocument(loader)
	switch {
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return nil, []fault{syntaxFault(data, err)}
	}
	return nil, []fault{{next.Line, next.Column, "a second document begins; a file holds one experiment"}}
}

// nextDocument reads one document. It recovers from panics of the parser.
func nextDocument(loader *yaml.Loader) (doc *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, fmt.Errorf("the YAML parser gave up: %v", r)
		}
	}()
	doc = &yaml.Node{}
	if err := loader.Load(doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("the YAML parser found no document")
	}
	return doc, nil
}

// checkText rejects invalid text before the parser sees it, because the parser does not report its position.
func checkText(data []byte) *fault {
	if len(data) > maxSource {
		return &fault{1, 1, fmt.Sprintf("the file has %d bytes; an experiment may have %d", len(data), maxSource)}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &fault{1, 1, "the file is UTF-16; save it as UTF-8"}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			line, column := position(data, i)
			return &fault{line, column, fmt.Sprintf("byte 0x%02x is not UTF-8; save the file as UTF-8", data[i])}
		case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f, r >= 0x80 && r < 0xa0 &&
			r != 0x85, r == 0xfeff, r == 0xfffe, r == 0xffff:
			line, column := position(data, i)
			return &fault{line, column, fmt.Sprintf("character U+%04X is not allowed in YAML", r)}
		}
		i += size
	}
	return nil
}

func syntaxFault(data []byte, err error) fault {
	f := fault{1, 1, err.Error()}
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		f.message = le.Message
		mark := le.Mark
		if mark.Line == 0 {
			mark = le.ContextMark
		}
		f.line, f.column = mark.Line, mark.Column
		// A missing end is detected at the end of the file; the beginning is more helpful.
		if unclosed(le) && le.ContextMark.Line > 0 {
			f.line, f.column = le.ContextMark.Line, le.ContextMark.Column
		}
		f.message = plain(le, f, data)
	}
	f.line, f.column = clamp(data, f.line, f.column)
	return f
}

func unclosed(le *yaml.LoadError) bool {
	return strings.Contains(le.Message, "unexpected end of stream") || strings.Contains(le.ContextMsg, "parsing a flow ")
}

// plain describes the parser's error in the user's terms.
func plain(le *yaml.LoadError, f fault, data []byte) string {
	line, _ := lineOf(data, f.line)
	switch {
	case strings.HasPrefix(strings.TrimLeft(line, " "), "\t"):
		return "YAML is not indented with tabs; use spaces"
	case strings.Contains(le.Message, "cannot start any token"):
		return "this character cannot start a value; put the text in quotes"
	case strings.Contains(le.ContextMsg, "scanning a quoted scalar"):
		return "the quotes that begin here are never closed"
	case strings.Contains(le.ContextMsg, "parsing a flow sequence"):
		return "the list that begins here needs ',' between its items and ']' at its end"
	case strings.Contains(le.ContextMsg, "parsing a flow mapping"):
		return "the fields that begin here need ',' between them and '}' at their end"
	case strings.Contains(le.Message, "mapping values are not allowed"):
		return "a second ':' on a line; put the text in quotes, or indent the field under its parent"
	}
	return "not YAML: " + le.Message
}

// lineBreak returns the length of the line break at data[i:], 0 if there is none. YAML 1.1 has more of them than "\n".
func lineBreak(data []byte, i int) int {
	rest := data[i:]
	switch {
	case rest[0] == '\n':
		return 1
	case rest[0] == '\r':
		if len(rest) > 1 && rest[1] == '\n' {
			return 2
		}
		return 1
	case rest[0] < utf8.RuneSelf:
		return 0
	case bytes.HasPrefix(rest, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(rest, []byte("\u2028")), bytes.HasPrefix(rest, []byte("\u2029")):
		return 3
	}
	return 0
}

// lineOf returns the line with this number, from 1, without its end. The line after a final line break exists and is
// empty.
func lineOf(source []byte, number int) (string, bool) {
	source = bytes.TrimPrefix(source, byteOrderMark)
	line, start := 1, 0
	for i := 0; i < len(source); {
		n := lineBreak(source, i)
		if n == 0 {
			i++
			continue
		}
		if line == number {
			return string(source[start:i]), true
		}
		i += n
		line, start = line+1, i
	}
	return string(source[start:]), line == number
}

// position converts an offset into line and column.
func position(data []byte, offset int) (line, column int) {
	line, start := 1, 0
	for i := 0; i < offset; {
		n := lineBreak(data, i)
		i += max(n, 1)
		if n > 0 {
			line, start = line+1, i
		}
	}
	return line, utf8.RuneCount(data[start:offset]) + 1
}

// clamp moves a position into the file: a parser may point past its end.
func clamp(data []byte, line, column int) (l, c int) {
	lines, _ := position(data, len(data))
	l = min(max(line, 1), lines)
	text, _ := lineOf(data, l)
	return l, min(max(column, 1), utf8.RuneCountInString(text)+1)
}

// templates is the folder of an area's templates, which are named by the question.
const templates = "templates"

// Template returns a commented experiment file for an area and a question, ready to be run. Its first line names
// SchemaFile, for editors that complete and check YAML.
func Template(a area.Area, question design.Question) ([]byte, error) {
	files := a.Parts().Files
	if files == nil {
		return nil, fmt.Errorf("area %s has no templates", quote(a.Name()))
	}
	data, err := fs.ReadFile(files, path.Join(templates, string(question)+".yaml"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("there is no template for area %s and question %s; there are those for %s",
			quote(a.Name()), quote(string(question)), strings.Join(Templates(a), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	return data, nil
}

// Templates lists the questions for which an area has a template.
func Templates(a area.Area) (names []string) {
	files := a.Parts().Files
	if files == nil {
		return nil
	}
	entries, err := fs.ReadDir(files, templates)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}
