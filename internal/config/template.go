package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/design"
)

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
