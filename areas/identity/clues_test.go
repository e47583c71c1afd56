package identity

import (
	"net/url"
	"strings"
	"testing"

	"tare/area"
)

// TestTellsGCEByItsRefusal: a metadata server that answers nobody without the header says which one it wants.
func TestTellsGCEByItsRefusal(t *testing.T) {
	const words = "Missing Metadata-Flavor:Google header.\n"
	for _, c := range []struct {
		address, body string
		status        int
		adapter, says string
	}{
		{"http://127.0.0.1:8080", words, 403, "gce-metadata", "asks for the header Metadata-Flavor: Google"},
		{"http://127.0.0.1:8080/computeMetadata/v1/instance/service-accounts/default/token", words, 403, "gce-metadata", ""},
		{"http://127.0.0.1:8080/tokens", words, 403, "", "without a path: http://127.0.0.1:8080"},
		{"http://127.0.0.1:8080", "Missing X-Other header.\n", 403, "", ""},
		{"http://127.0.0.1:8080", words, 404, "", ""},
	} {
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		s, err := tellsHTTP(u, area.Heard{Status: c.status, Header: func(string) string { return "" }, Begin: c.body})
		said := s.Evidence
		if err != nil {
			said += err.Error()
		}
		if s.Adapter != c.adapter || (s.URL == "http://127.0.0.1:8080") != (c.adapter != "") ||
			!strings.Contains(said, c.says) {
			t.Errorf("%s, %d, %q: %+v, %v; want %q and %q", c.address, c.status, c.body, s, err, c.adapter, c.says)
		}
	}
}

// TestRefusedHint names the adapter whose header the server asks for.
func TestRefusedHint(t *testing.T) {
	h, g := httpToken(), gceMetadata()
	const words = "Missing Metadata-Flavor:Google header.\n"
	if got := h.refusedHint([]byte(words)); !strings.Contains(got, "--adapter gce-metadata") {
		t.Errorf("another adapter: %s", got)
	}
	for _, got := range []string{h.refusedHint([]byte("no")), g.refusedHint([]byte(words))} {
		if !strings.Contains(got, "see that the credential") {
			t.Errorf("nothing shows that another adapter is wanted: %s", got)
		}
	}
}
