package engine

import (
	"bytes"
	"testing"
)

// FuzzXACML: whatever a file holds, it is refused or complete.
func FuzzXACML(f *testing.F) {
	f.Add([]byte(`<Policy xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" PolicyId="a"/>`))
	f.Add([]byte(`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///">]><PolicySet PolicySetId="a"><PolicyIdReference/></PolicySet>`))
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := parseXACML("x.xml", text)
		if err == nil && (root == "" || bytes.Contains(text, []byte("<!DOCTYPE")) && !bytes.Contains(text, []byte("<!--")) &&
			!bytes.Contains(text, []byte("CDATA"))) {
			t.Errorf("%q is taken, as %q", text, root)
		}
	})
}
