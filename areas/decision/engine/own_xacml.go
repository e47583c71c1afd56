package engine

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tare/internal/files"
	"tare/internal/kit"
)

const (
	// xacmlNamespace is that of XACML 3.0 (core specification, section 5).
	xacmlNamespace = "urn:oasis:names:tc:xacml:3.0:core:schema:wd-17"
	// mostXACML bounds a file of policies, in bytes.
	mostXACML = 64 << 20
)

// CheckXACML reports why a file cannot be given to an engine as the policies that it decides by, with the line.
func CheckXACML(file string) error {
	_, err := readXACML(file)
	return err
}

// IsXACML reports whether a text begins as a file of XACML does.
func IsXACML(text []byte) bool {
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if e, ok := token.(xml.StartElement); ok || err != nil {
			return err == nil && strings.HasPrefix(e.Name.Space, "urn:oasis:names:tc:xacml:")
		}
	}
}

// readXACML returns the identifier of the Policy or PolicySet in a file.
func readXACML(file string) (root string, err error) {
	text, err := kit.ReadText(file, mostXACML)
	if err != nil {
		return "", err
	}
	return parseXACML(file, text)
}

// parseXACML is readXACML of the content. It wants a file that is complete: one that declares no entities, with which a
// parser would read others, and refers to no policies elsewhere.
func parseXACML(file string, text []byte) (root string, err error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	fault := func(format string, args ...any) error {
		line, _ := d.InputPos()
		return fmt.Errorf("%s:%d: %w", file, line, fmt.Errorf(format, args...))
	}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fault("no XML: %w", err)
		}
		switch t := token.(type) {
		case xml.Directive:
			return "", fault("it declares a document type, by which a parser may read other files: take the declaration out")
		case xml.StartElement:
			if root == "" {
				if root, err = xacmlIdentifier(t); err != nil {
					return "", fault("%w", err)
				}
			}
			if slices.Contains([]string{"PolicyIdReference", "PolicySetIdReference"}, t.Name.Local) {
				return "", fault("%s: tare gives an engine one file: put the policy in the place of the reference", t.Name.Local)
			}
		}
	}
	if root == "" {
		return "", fmt.Errorf("%s holds no element", file)
	}
	return root, nil
}

// xacmlIdentifier returns the identifier of a file's outermost element.
func xacmlIdentifier(e xml.StartElement) (string, error) {
	name, known := map[string]string{"Policy": "PolicyId", "PolicySet": "PolicySetId"}[e.Name.Local]
	switch {
	case !known:
		return "", fmt.Errorf("the outermost element is %s: want Policy or PolicySet", e.Name.Local)
	case e.Name.Space != xacmlNamespace:
		return "", fmt.Errorf("%s is not of XACML 3.0, whose namespace is %s", e.Name.Local, xacmlNamespace)
	}
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Value != "" {
			return a.Value, nil
		}
	}
	return "", fmt.Errorf("%s has no %s", e.Name.Local, name)
}

// adoptXACML checks the copy of the user's policies, and writes AuthzForce's own configuration beside it.
func (l Launch) adoptXACML(dir, name, file string) error {
	root, err := readXACML(file)
	if err != nil || l.Kind != AuthzForce {
		return err
	}
	to, err := files.Reach(dir)
	if err != nil {
		return err
	}
	return errors.Join(to.Write(authzForceFile, authzForceConfig(name, root)), to.Close())
}
