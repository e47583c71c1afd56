package kit

import (
	"strings"
	"testing"

	"tare/area"
)

// TestCheckHeaders rejects bad headers of the file without printing the line, which may hold a secret.
func TestCheckHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		headers map[string]string
		secret  map[string]area.Secret
		path    string // of the finding; empty: there is none
		says    string
	}{
		"good":       {map[string]string{"X-Team": "blue"}, map[string]area.Secret{"Authorization": {Env: "A"}}, "", ""},
		"a secret":   {map[string]string{"X-Api-Key": "k"}, nil, "callers[1].headers.X-Api-Key", "secret_headers"},
		"two lines":  {map[string]string{"X": "a\r\nY: b"}, nil, "callers[1].headers.X", "printable"},
		"not ASCII":  {map[string]string{"X": "ä"}, nil, "callers[1].headers.X", "printable"},
		"HTTP's own": {map[string]string{"Host": "x"}, nil, "callers[1].headers.Host", "belongs to the protocol"},
		"the protocol's": {
			map[string]string{"Content-Type": "x"},
			nil, "callers[1].headers.Content-Type",
			"belongs to the protocol",
		},
		"no name": {map[string]string{"X:Y": "x"}, nil, "callers[1].headers.X:Y", "not a header name"},
		"a secret's name": {
			nil,
			map[string]area.Secret{"content-type": {Env: "A"}},
			"callers[1].secret_headers.content-type",
			"belongs to the protocol",
		},
		"a secret's lines": {
			nil,
			map[string]area.Secret{"A\r\n": {Env: "A"}},
			"callers[1].secret_headers.A\r\n",
			"not a header name",
		},
	} {
		found := CheckHeaders("callers[1].", c.headers, c.secret, "content-type")
		if c.path == "" {
			if len(found) > 0 {
				t.Errorf("%s: got findings %+v, want none", name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Path != c.path || !strings.Contains(found[0].Message, c.says) {
			t.Errorf("%s: %+v, want %q at %s", name, found, c.says, c.path)
			continue
		}
		if inFile := c.headers != nil; found[0].Secret != inFile || found[0].Severity != area.Error {
			t.Errorf("%s: got %+v, want an error that marks the header as secret only if it is in the file", name, found[0])
		}
	}
}
