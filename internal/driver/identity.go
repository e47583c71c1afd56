package driver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"tare/internal/files"
)

// Identity distinguishes a program from another that may have the same name later: by its description and by the
// content of its files (see Program.Files). It does not cover libraries and data that the program reads: its version
// must change with them.
func Identity(p Program, d Description) (map[string]string, error) {
	says, err := json.Marshal(struct {
		Operations []Operation
		Factors    map[string][]string
	}{d.Operations, d.Factors}) // maps are encoded in the order of their keys
	if err != nil {
		return nil, fmt.Errorf("encode the description of %s: %w", p.Name, err)
	}
	sum := sha256.Sum256(says)
	out := map[string]string{
		"says that it is":        strings.TrimSpace(d.Name + " " + d.Version),
		"operations and factors": hex.EncodeToString(sum[:]),
	}
	for name, path := range p.Files {
		if out["content of "+name], err = files.Sum(path); err != nil {
			return nil, fmt.Errorf("tell %s from other programs: %w", p.Name, err)
		}
	}
	return out, nil
}

// stat returns the current state of a program's files.
func (p Program) stat() (map[string]os.FileInfo, error) {
	out := map[string]os.FileInfo{}
	for name, path := range p.Files {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", p.Name, err)
		}
		out[name] = info
	}
	return out, nil
}

// changed names the first of a program's files that has been replaced or written to; empty: none.
func changed(was, is map[string]os.FileInfo) string {
	for _, name := range slices.Sorted(maps.Keys(was)) {
		a, b := was[name], is[name]
		if b == nil || !os.SameFile(a, b) || a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) {
			return name
		}
	}
	return ""
}
