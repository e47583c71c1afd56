// Package fga reads stores of OpenFGA from the files that people keep: a model, relationships, and checks with their
// right answers.
package fga

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tare/areas/bundle"
)

// A Store is what decides, and what is asked of it.
type Store struct {
	Model  json.RawMessage `json:"model,omitempty"`  // in the API's form; nil: it is in Files
	Files  []Source        `json:"files,omitempty"`  // in the modelling language
	Schema string          `json:"schema,omitempty"` // of a model of several modules; "": there is one file
	Tuples []Tuple         `json:"tuples"`
	// Checks are those of the tests, one for each relation that a test asserts, and their questions for lists.
	Checks []Check `json:"-"`
	// More says that there are more checks than are read.
	More bool `json:"-"`
}

// A Source is a file, or the part of one, that holds the model or a module of it.
type Source struct {
	File   string `json:"file"`
	Line   int    `json:"line"`   // of the file, at which the text begins
	Column int    `json:"column"` // by which it is indented there
	Text   string `json:"text"`
}

// A Tuple is a relationship in the API's form, and its place.
type Tuple struct {
	Key  json.RawMessage `json:"key"`
	File string          `json:"file"`
	Line int             `json:"line"`
}

// A Check is a question with its right answer.
type Check struct {
	Name string          // who asks for what
	Body json.RawMessage // of a request
	Want bool
	// List is the right list of a question for one.
	List *[]string `json:",omitempty"`
}

// storeEnds are how names of files with stores end.
var storeEnds = []string{".fga.yaml", ".fga.yml"}

// IsStore reports whether a file's name is one of those of stores.
func IsStore(name string) bool {
	return slices.ContainsFunc(storeEnds, func(end string) bool { return strings.HasSuffix(name, end) })
}

// Read reads a file, or the one in a folder, and the files that it names, which are in its folder or below. Nobody may
// change what it returns: who reads the same again gets the same.
func Read(at string) (*Store, error) {
	file, err := Find(at)
	if err != nil {
		return nil, err
	}
	if s := known.of(file); s != nil {
		return s, nil
	}
	r := newReader(file)
	if err := r.readStore(filepath.Base(file)); err != nil {
		return nil, err
	}
	known.keep(file, r)
	return r.store, nil
}

// Find is the file with the store: at itself, or in the folder the one, or store.fga.yaml.
func Find(at string) (string, error) {
	isFolder, err := bundle.IsFolder(at)
	switch {
	case err != nil:
		return "", err
	case !isFolder && !IsStore(at):
		return "", fmt.Errorf("%s is neither a folder nor a store (%s) of OpenFGA", at, storeEnds[0])
	case !isFolder:
		return at, nil
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		switch name := e.Name(); {
		case !e.Type().IsRegular() || !IsStore(name):
		case strings.TrimSuffix(name, path.Ext(name)) == "store.fga":
			return filepath.Join(at, name), nil
		default:
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no store (%s) of OpenFGA in %s", storeEnds[0], at)
	case 1:
		return filepath.Join(at, found[0]), nil
	}
	return "", fmt.Errorf("there are %d stores of OpenFGA in %s, and none is store.fga.yaml: name one of %s", len(found),
		at, strings.Join(found, ", "))
}

// Sum is the SHA-256 of all that makes the store.
func Sum(at string) (string, error) {
	s, err := Read(at)
	if err != nil {
		return "", fmt.Errorf("read the policies of %s: %w", at, err)
	}
	text, err := json.Marshal(struct {
		*Store
		Checks []Check
	}{s, s.Checks})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// A reader reads the files of a store.
type reader struct {
	folder string
	from   *bundle.Reader
	store  *Store
	sums   map[string][sha256.Size]byte // of the files that were read, by their names
	bodies int                          // bytes of the checks' requests
}

func newReader(file string) *reader {
	return &reader{
		folder: filepath.Dir(file), from: bundle.NewReader(), store: &Store{Tuples: []Tuple{}},
		sums: map[string][sha256.Size]byte{},
	}
}

// read reads a file that the store names, and returns how the user would name it.
func (r *reader) read(name string) (text []byte, shown string, err error) {
	shown = filepath.Join(r.folder, name)
	if !filepath.IsLocal(name) {
		return nil, shown, fmt.Errorf("%s is not in the folder of the store, %s, or below it", name, r.folder)
	}
	text, err = r.from.Read(r.folder, filepath.Clean(name))
	r.sums[name] = sha256.Sum256(text)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no %s", shown)
	}
	return text, shown, err
}
