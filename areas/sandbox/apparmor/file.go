package apparmor

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"tare/internal/kit"
)

// mostFile bounds the size of a file of profiles, with what it includes from its own folder.
const mostFile = 1 << 20

// A File is a file of profiles of the user's, as it was when it was read.
type File struct {
	Name string `json:"name"` // the file's, without its folder
	// Text is the source with the text of included files, which may change later.
	Text     string   `json:"text"`
	Profiles []string `json:"profiles"` // those that are not inside of others
}

// ReadProfile reads a file of profiles and checks that apparmor_parser compiles it for this kernel.
func ReadProfile(ctx context.Context, path string) (*File, error) {
	text, err := kit.ReadText(path, mostFile)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	own, err := ownFolder(path)
	if err != nil {
		return nil, err
	}
	whole, grew, err := included(string(text), own)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := Source{Name: name, Text: whole}
	if grew {
		s.Name += " with its includes" // its lines are numbered so
	}
	if _, _, err := Compile(ctx, s, Enforce); err != nil {
		return nil, err
	}
	names, err := profileNames(ctx, s)
	if err != nil {
		return nil, err
	}
	f := &File{Name: name}
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, ":"):
			return nil, fmt.Errorf("%s: profile %s is of an AppArmor namespace: tare loads profiles into one of its own; "+
				"leave the namespace out", s.Name, n)
		case !strings.Contains(n, "//"):
			f.Profiles = append(f.Profiles, n)
		}
	}
	slices.Sort(f.Profiles)
	if f.Text, err = flatten(ctx, s); err != nil {
		return nil, err
	}
	return f, nil
}

// Pick returns the profile of this name, or the only one if the name is empty.
func (f *File) Pick(name string) (string, error) {
	switch {
	case name == "" && len(f.Profiles) != 1:
		return "", fmt.Errorf("%s has %d profiles: name the one to use, of %s", f.Name, len(f.Profiles),
			strings.Join(f.Profiles, ", "))
	case name == "":
		name = f.Profiles[0]
	case !slices.Contains(f.Profiles, name):
		return "", fmt.Errorf("%s has no profile %q; it has %s", f.Name, name, strings.Join(f.Profiles, ", "))
	}
	if strings.Contains(name, "@{") {
		return "", fmt.Errorf("%s: the name of profile %s holds a variable: give it a name, as in "+
			"profile NAME %s { … }", f.Name, name, name)
	}
	return name, nil
}

// Source returns the source of the file's profiles, with what it included when it was read.
func (f *File) Source() Source { return Source{Name: f.Name, Text: f.Text} }
