package reference

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/cedar-policy/cedar-go"

	"tare/areas/bundle"
)

// ReadCedar reads the Cedar policies of a file, or of the .cedar files of a folder and of those below it.
func ReadCedar(at string) (*cedar.PolicySet, error) {
	is, err := os.Stat(at)
	if err != nil {
		return nil, err
	}
	if !is.IsDir() {
		return readCedar(at)
	}
	all, n := cedar.NewPolicySet(), 0
	err = filepath.WalkDir(at, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || filepath.Ext(path) != ".cedar" {
			return err
		}
		n++
		of, err := readCedar(path)
		if err != nil {
			return err
		}
		for id, policy := range of.All() {
			all.Add(cedar.PolicyID(path)+"#"+id, policy) // each file counts its policies from 0
		}
		return nil
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("there is no .cedar file in %s", at)
	}
	return all, err
}

func readCedar(file string) (*cedar.PolicySet, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all, err := cedar.NewPolicySetFromBytes(file, text)
	if err != nil {
		return nil, errors.New(cedarFault(file, string(text), err.Error()))
	}
	return all, nil
}

var cedarAt = regexp.MustCompile(`^(?:parser error: )?parse error at <input>:(\d+):(\d+) `)

// cedarFault describes a fault with its place in the file, the line and a caret.
func cedarFault(file, text, said string) string {
	m := cedarAt.FindStringSubmatch(said)
	if m == nil {
		return file + ": " + said
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	return bundle.Place{File: file, Line: line, Column: column}.Show(text, "at "+said[len(m[0]):])
}
