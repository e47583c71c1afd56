package fga

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v4"
)

// readStore reads the store's own file, and what it names.
func (r *reader) readStore(name string) error {
	doc, text, err := r.parsed(name)
	if err != nil {
		return err
	}
	f, err := doc.fields("a store", "name", "model", "model_file", "tuples", "tuple_file", "tuple_files", "tests")
	if err != nil {
		return err
	}
	if err := r.readModel(doc, f, text); err != nil {
		return err
	}
	tuples, err := r.tuples(f)
	if err != nil {
		return err
	}
	r.store.Tuples = append(r.store.Tuples, tuples...)
	tests, err := f["tests"].list("tests")
	if err != nil {
		return err
	}
	for _, t := range tests {
		if err := r.readTest(t); err != nil {
			return err
		}
	}
	return nil
}

// parsed reads and parses a file that the store names.
func (r *reader) parsed(name string) (doc item, text string, err error) {
	all, shown, err := r.read(name)
	if err != nil {
		return item{}, "", err
	}
	root, err := parse(shown, all)
	return item{root, shown}, string(all), err
}

// readModel reads the model: one in the file itself, or one in a file that it names.
func (r *reader) readModel(doc item, f map[string]item, text string) error {
	in, inFile := f["model"], f["model_file"]
	switch {
	case in.Node != nil && inFile.Node != nil:
		return inFile.errorf("model and model_file exclude each other")
	case in.Node != nil:
		model, err := in.text("a model")
		if err != nil {
			return err
		}
		s := Source{File: in.file, Line: in.Line, Text: model}
		if in.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			s.Line, s.Column = in.Line+1, indentation(text, in.Line+1, model)
		}
		r.store.Files = []Source{s}
		return s.checkNested()
	case inFile.Node == nil:
		return doc.errorf("it has no model: want model or model_file")
	}
	name, err := inFile.text("a file")
	if err != nil {
		return err
	}
	if path.Ext(name) == ".mod" {
		err = r.readModules(name)
	} else {
		err = r.readModelFile(name)
	}
	if err != nil {
		return inFile.errorf("model_file: %w", err)
	}
	return nil
}

// indentation is by how much a block of text is indented in its file.
func indentation(text string, line int, block string) int {
	lines := strings.Split(text, "\n")
	for k, is := range strings.Split(block, "\n") {
		if at := line - 1 + k; strings.TrimSpace(is) != "" && at < len(lines) {
			return max(0, strings.Index(lines[at], is))
		}
	}
	return 0
}

func (r *reader) readModelFile(name string) error {
	text, shown, err := r.read(name)
	switch {
	case err != nil:
		return err
	case path.Ext(name) != ".json":
		s := Source{File: shown, Line: 1, Text: string(text)}
		r.store.Files = append(r.store.Files, s)
		return s.checkNested()
	case !json.Valid(text):
		return fmt.Errorf("%s: this is no JSON", shown)
	}
	r.store.Model = text
	return nil
}

// mostNested bounds the brackets of a model: the compiler of the language takes a minute, and gigabytes, for many.
const mostNested = 100

// checkNested refuses a model whose brackets are nested too deeply.
func (s Source) checkNested() error {
	deep := 0
	for i, line := range strings.Split(s.Text, "\n") {
		for _, c := range line {
			switch c {
			case '(':
				deep++
			case ')':
				deep = max(0, deep-1)
			}
			if deep > mostNested {
				return fmt.Errorf("%s:%d: brackets are nested in more than %d others", s.File, s.Line+i, mostNested)
			}
		}
	}
	return nil
}

// readModules reads the modules that a file of them names.
func (r *reader) readModules(name string) error {
	doc, _, err := r.parsed(name)
	if err != nil {
		return err
	}
	f, err := doc.fields("a file of modules", "schema", "contents")
	if err != nil {
		return err
	}
	if r.store.Schema, err = f["schema"].text("a version"); err != nil {
		return err
	}
	files, err := f["contents"].texts("files")
	switch {
	case err != nil:
		return err
	case r.store.Schema == "" || len(files) == 0:
		return doc.errorf("want schema and contents")
	}
	for _, file := range files {
		if err := r.readModelFile(path.Join(path.Dir(name), file)); err != nil {
			return err
		}
	}
	return nil
}

// tuples are the relationships of a store or a test: its own, and those of the files that it names.
func (r *reader) tuples(f map[string]item) (out []Tuple, err error) {
	own, err := f["tuples"].list("relationships")
	if err != nil {
		return nil, err
	}
	if out, err = tuplesOf(own); err != nil {
		return nil, err
	}
	names, err := f["tuple_files"].texts("files")
	if err != nil {
		return nil, err
	}
	if one, err := f["tuple_file"].text("a file"); err != nil {
		return nil, err
	} else if one != "" {
		names = append(names, one)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if is := path.Clean(name); seen[is] {
			return nil, fmt.Errorf("%s: tuple_files name %s twice", r.folder, name)
		}
		seen[path.Clean(name)] = true
		more, err := r.tupleFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func tuplesOf(items []item) (out []Tuple, err error) {
	for _, i := range items {
		f, err := i.fields("a relationship", "user", "relation", "object", "condition")
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"user", "relation", "object"} {
			if f[name].Node == nil {
				return nil, i.errorf("a relationship without %s", name)
			}
		}
		key, err := i.value()
		if err != nil {
			return nil, err
		}
		out = append(out, Tuple{key, i.file, i.Line})
	}
	return out, nil
}

func (r *reader) tupleFile(name string) ([]Tuple, error) {
	if path.Ext(name) == ".csv" {
		text, shown, err := r.read(name)
		if err != nil {
			return nil, err
		}
		return tuplesOfCSV(shown, text)
	}
	doc, _, err := r.parsed(name)
	if err != nil {
		return nil, err
	}
	items, err := doc.list("relationships")
	if err != nil {
		return nil, err
	}
	return tuplesOf(items)
}
