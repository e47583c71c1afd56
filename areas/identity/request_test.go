package identity

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tare/area"
)

// TestWriteRequest: the request of a command line as lines of the target section.
func TestWriteRequest(t *testing.T) {
	text := func(s string) area.BodyPart { return area.BodyPart{Text: s} }
	file := func(s string) area.BodyPart { return area.BodyPart{File: s} }
	for name, c := range map[string]struct {
		request area.Request
		want    string // part of the lines, or of the error
	}{
		"nothing":    {area.Request{}, ""},
		"by status":  {area.Request{ByStatus: true}, "status_only: true"},
		"method":     {area.Request{Method: "DELETE"}, "    method: \"DELETE\"\n"},
		"parts":      {area.Request{Body: []area.BodyPart{text("a=1"), text("b=2")}}, "    body: \"a=1&b=2\"\n"},
		"empty body": {area.Request{Body: []area.BodyPart{text("")}}, "    method: \"POST\"\n"},
		"file": {
			area.Request{Body: []area.BodyPart{file("a b")}}, "    body: \"{data1}\"\n    files: {data1: \"a b\"}\n",
		},
		"text and file": {area.Request{Body: []area.BodyPart{text("a=1"), file("f")}}, "body: \"a=1&{data1}\""},
		"name in use":   {area.Request{Body: []area.BodyPart{text("{data1}"), file("f")}}, "files: {data1_: \"f\"}"},
		"bearer":        {area.Request{Bearer: area.Secret{Env: "T"}}, "    bearer: {env: \"T\"}\n"},
		"other method":  {area.Request{Method: "HEAD"}, "tare sends GET, POST, PUT, PATCH, DELETE, OPTIONS"},
		"body of GET":   {area.Request{Method: "GET", Body: []area.BodyPart{text("x")}}, "no body with GET"},
		"secret":        {area.Request{Body: []area.BodyPart{text(`{"password": "` + planted + `"}`)}}, "-d @FILE"},
	} {
		got, err := writeRequest(c.request)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		if strings.Contains(got, planted) {
			t.Errorf("%s: the secret is in %q", name, got)
		}
	}
}

// TestBodyFiles: what a file holds is sent as it is, without line ends, and braces in it are no placeholders. The
// media type is chosen by the body with the files in it.
func TestBodyFiles(t *testing.T) {
	var good atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPatch || string(body) != `{"a": "{n}{token}&%"}` ||
			r.Header.Get("Content-Type") != "application/json" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		good.Add(1)
	}))
	tg, _ := prepared(t, &Spec{Adapter: "http-token", URL: url, HTTP: &HTTP{
		Method: http.MethodPatch, Body: "{f}", StatusOnly: true,
		Files: map[string]string{"f": secretFile(t, "body", "{\"a\": \r\n\"{n}{token}&%\"}").File},
	}}, standard)
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Error(err)
	}
	before := good.Load()
	wantGoodCalls(t, tg, 4)
	if n := good.Load() - before; n != 4 {
		t.Errorf("%d of 4 calls had the right body", n)
	}
}

// TestBodyFilesOfASecret: a file that seems to hold a secret is not sent where others could read it, unless the
// experiment allows that, and then the report says so.
func TestBodyFilesOfASecret(t *testing.T) {
	spec := &Spec{Adapter: "http-token", URL: "http://idp.example", HTTP: &HTTP{
		Body: "{f}", Files: map[string]string{"f": secretFile(t, "body", "user=me&password="+planted).File},
	}}
	files, err := spec.readBodyFiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url                        string
		allowed, isRefused, isNote bool
	}{
		{"http://idp.example", false, true, true},
		{"http://idp.example", true, false, true},
		{"https://idp.example", false, false, false},
		{"http://127.0.0.1:1", false, false, false},
	} {
		u, err := parseURL(c.url, reach{tls: true})
		if err != nil {
			t.Fatal(err)
		}
		spec.ExposeSecrets = c.allowed
		err = spec.checkBodyExposure(u, files)
		note := spec.noteBodyExposure(u, files)
		if (err != nil) != c.isRefused || (note != "") != c.isNote {
			t.Errorf("%s, allowed %v: %v, note %q", c.url, c.allowed, err, note)
		}
		if strings.Contains(note, planted) || err != nil && strings.Contains(err.Error(), planted) {
			t.Errorf("%s: the secret is printed: %v, %q", c.url, err, note)
		}
	}
}

// TestBadBodyFiles: what cannot be read has its reason.
func TestBadBodyFiles(t *testing.T) {
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file",
		t.TempDir():                        "regular file",
		secretFile(t, "body", strings.Repeat("x", maxBodyFile+1)).File: "longer than",
		"~nobody/x": "only ~/ is supported",
	} {
		s := &Spec{HTTP: &HTTP{Body: "{f}", Files: map[string]string{"f": path}}}
		if _, err := s.readBodyFiles(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
