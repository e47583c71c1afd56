package config

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"tare/internal/design"
)

//go:embed templates
var templates embed.FS

// Template returns a commented experiment file for an area and a question, ready to be run. Its first line names
// SchemaFile, for editors that complete and check YAML.
func Template(areaName string, question design.Question) ([]byte, error) {
	data, err := templates.ReadFile("templates/" + areaName + "-" + string(question) + ".yaml")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil, fmt.Errorf("there is no template for area %s and question %s; there are %s",
			quote(areaName), quote(string(question)), strings.Join(Templates(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("read template: %w", err)
	}
	return data, nil
}

// Templates lists the templates as "area-question".
func Templates() []string {
	entries, err := templates.ReadDir("templates")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	slices.Sort(names)
	return names
}
