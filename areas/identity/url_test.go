package identity

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/kit/oneshot"
	"tare/internal/ratelimit"
	"tare/rigs/areatest"
)

// TestURL measures an external endpoint. Its tokens' lifetime has a fraction, as a number in JSON may have.
func TestURL(t *testing.T) {
	const mine = "robot@project.iam.gserviceaccount.com"
	strict := true
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strict && (r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != ""):
			w.WriteHeader(403)
		case r.URL.Path == gceAccounts+"default/email":
			_, _ = w.Write([]byte(mine))
		case r.URL.Path == gceAccounts+mine+"/token":
			_, _ = w.Write([]byte(strings.Replace(goodToken, "3599", "3599.5", 1)))
		default:
			w.WriteHeader(404)
		}
	}))
	tg := served(t, &Spec{Adapter: "gce-metadata", URL: url, Account: accountEmail}, 3)
	end := endpointOf(t, tg, standard)
	if "http://"+end.Host != url || "http://"+end.Addr.String() != url || end.Keys != 1 ||
		(end.Local != nil && end.Local(0).IsValid()) {
		t.Errorf("endpoint %+v", end)
	}
	if q := tg.Observe(t.Context(), standard).ListenQueue; q == nil || *q != 0 {
		t.Errorf("listen queue %v", q)
	}
	strict = false
	if err := tg.Verify(t.Context(), standard); err == nil ||
		!strings.Contains(err.Error(), "without the header Metadata-Flavor must be refused") {
		t.Errorf("an endpoint that refuses nothing: %v", err)
	}
}

func TestPrepareFailsOnWrongAnswers(t *testing.T) {
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	if err := unprepared(t, &Spec{Adapter: "gce-metadata", URL: url}); !strings.Contains(err.Error(),
		"not the token that was asked for") {
		t.Errorf("prepare: %v", err)
	}
}

func TestPreflight(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	url := srv.URL
	if f := (Area{}).Preflight(t.Context(), &Spec{Adapter: "gce-metadata", URL: url}, area.Env{}); len(f) != 0 {
		t.Errorf("a server that listens: %v", f)
	}
	f := (Area{}).Preflight(t.Context(), &Spec{Adapter: "gce-metadata", URL: url}, area.Env{Look: true})
	if len(f) != 1 || f[0].Severity != area.Info ||
		!strings.Contains(f[0].Message, "no request of the experiment was sent") {
		t.Errorf("a look at a server that listens: %v", f)
	}
	srv.Close()
	f = (Area{}).Preflight(t.Context(), &Spec{Adapter: "gce-metadata", URL: url}, area.Env{})
	if len(f) != 1 || f[0].Severity != area.Error || f[0].Path != "url" ||
		!strings.Contains(f[0].Message, "nothing listens at 127.0.0.1:") ||
		!strings.Contains(f[0].Hint, "start the server") || strings.Contains(f[0].Hint, "node") {
		t.Errorf("nobody listens: %v", f)
	}
	deep := embedded("healthy")
	deep.Embedded.Backlog = new(reference.MaxBacklog() + 1)
	f = Area{}.Preflight(t.Context(), deep, area.Env{})
	if len(f) != 1 || f[0].Severity != area.Warning || !strings.Contains(f[0].Message, "somaxconn") {
		t.Errorf("a backlog beyond somaxconn: %v", f)
	}
}

// TestAnswersThatEndAWarmUp: what a run says of an answer that it does not take, and the next step.
func TestAnswersThatEndAWarmUp(t *testing.T) {
	var status atomic.Int64
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://me:"+planted+"@other.example/login?code="+planted)
		w.WriteHeader(int(status.Load()))
	}))
	get := Spec{Adapter: "http-token", URL: server, HTTP: &HTTP{StatusOnly: true}}
	withKey, withFile := get, get
	withKey.SecretHeaders = map[string]area.Secret{"X-Api-Key": secretFile(t, "key", planted)}
	withFile.HTTP = &HTTP{
		Method: "POST", Body: "{data}", Files: map[string]string{"data": secretFile(t, "data", planted).File},
	}
	for _, c := range []struct {
		status     int
		spec       Spec
		says, next string
	}{
		{401, get, "status 401: the request was refused, and holds no credential", "-H 'Authorization: @FILE'"},
		{403, get, "holds no credential", "-H 'Authorization: @FILE'"},
		{401, withKey, "the caller's credential was refused", "see that the credential below http"},
		{401, withFile, "the caller's credential was refused", "see that the credential below http"},
		{301, get, "a redirect, which is not followed", "give the address that it leads to"},
		{429, get, "no good answer within 1m0s, and the last: status 429", "wait until"},
		{500, get, "no good answer within 1m0s, and the last: status 500", "the server's log"},
	} {
		status.Store(int64(c.status))
		plan, err := c.spec.plan(standard)
		if err != nil {
			t.Fatal(err)
		}
		p := &arm{plan: plan, env: testEnv(t), emails: make([]string, 1), subjects: make([]string, 1)}
		if err := p.unlock(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		err = p.find(ctx)
		if err == nil {
			err = p.warm(ctx)
		}
		cancel()
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), planted) ||
			!strings.Contains(area.HintOf(err), c.next) {
			t.Errorf("%d: %v, next %q; want %q and %q", c.status, err, area.HintOf(err), c.says, c.next)
		}
	}
}

// TestMaxRateLimitsAllRequests: max_rate also limits requests outside of the load, over all treatments together.
func TestMaxRateLimitsAllRequests(t *testing.T) {
	var asked atomic.Int64
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "" {
			w.WriteHeader(403)
			return
		}
		_, _ = w.Write([]byte(goodToken))
	}))
	env := testEnv(t)
	const rate = 20
	env.Limit = ratelimit.New(env.Clock, rate)
	tg, j := areatest.Open[*target](t, Area{}, &Spec{Adapter: "gce-metadata", URL: url}, env)
	begin := time.Now()
	for _, tr := range []design.Treatment{{ID: "a"}, {ID: "b"}} {
		err := errors.Join(tg.Prepare(t.Context(), tr, j), tg.Enter(t.Context(), tr), tg.Verify(t.Context(), tr))
		if err != nil {
			t.Fatal(err)
		}
	}
	took, n := time.Since(begin).Seconds(), asked.Load()
	if n < 8 {
		t.Errorf("%d requests, want the warm-up, the canaries and the timed call of two treatments", n)
	}
	if most := 1 + rate*took; float64(n) > most {
		t.Errorf("%d requests in %.2f s, at most %.0f were allowed", n, took, most)
	}
}

// TestLongAnswersAreRejected: the beginning of an endless answer is no token, and the request is not repeated until the
// time is over.
func TestLongAnswersAreRejected(t *testing.T) {
	asked := 0
	url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write(bytes.Repeat([]byte("a"), oneshot.MaxBody+1))
	}))
	err := unprepared(t, &Spec{Adapter: "http-token", URL: url, HTTP: &HTTP{Token: wholeBody}})
	if !errors.Is(err, oneshot.ErrTooLong) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// flavorRefusal is what a metadata server answers without its header.
const flavorRefusal = "Missing Metadata-Flavor:Google header.\n"

// TestTellsGCEByItsRefusal: a metadata server that answers nobody without the header says which one it wants.
func TestTellsGCEByItsRefusal(t *testing.T) {
	for _, c := range []struct {
		address, body string
		status        int
		adapter, says string
	}{
		{"http://127.0.0.1:8080", flavorRefusal, 403, "gce-metadata", "asks for the header Metadata-Flavor: Google"},
		{"http://127.0.0.1:8080" + gceAccounts + "default/token", flavorRefusal, 403, "gce-metadata", ""},
		{"http://127.0.0.1:8080/tokens", flavorRefusal, 403, "", "without a path: http://127.0.0.1:8080"},
		{"http://127.0.0.1:8080", "Missing X-Other header.\n", 403, "", ""},
		{"http://127.0.0.1:8080", flavorRefusal, 404, "", ""},
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
	if got := h.refusedHint([]byte(flavorRefusal)); !strings.Contains(got, "--adapter gce-metadata") {
		t.Errorf("another adapter: %s", got)
	}
	for _, got := range []string{h.refusedHint([]byte("no")), g.refusedHint([]byte(flavorRefusal))} {
		if !strings.Contains(got, "see that the credential") {
			t.Errorf("nothing shows that another adapter is wanted: %s", got)
		}
	}
}

// TestExposedSecretsAreNoted: the report says that the experiment file allowed secrets to be sent in the clear.
func TestExposedSecretsAreNoted(t *testing.T) {
	for text, want := range map[string]string{
		"http://idp.example": "secrets were sent to idp.example over http://", "https://idp.example": "",
		"http://127.0.0.1:8080": "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		p := &arm{plan: plan{url: u, spec: &Spec{
			ExposeSecrets: true,
			SecretHeaders: map[string]area.Secret{"X-Api-Key": {Env: "KEY"}},
		}}}
		if got := strings.Join(p.notes(), "; "); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

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
