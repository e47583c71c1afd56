package protocol

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/kit"
)

// A request is one HTTP request to a decision point, below the session's Base.
type request struct {
	method string
	path   string // begins with a slash, or is empty
	media  string // type of body and answer; empty: application/json
	body   []byte // nil: none, with GET and DELETE
}

// jsonMedia is the media type of most of these protocols.
const jsonMedia = "application/json"

// render returns the whole HTTP/1.1 request with the session's credentials and headers. A header of the session
// replaces the protocol's own.
func (r request) render(s *Session) []byte {
	r.body = s.fill(r.body)
	path := s.Base + r.path
	if path == "" {
		path = "/"
	}
	var b strings.Builder
	b.WriteString(r.method + " " + path + " HTTP/1.1\r\nHost: " + s.Host + "\r\n")
	for _, line := range r.headers(s) {
		b.WriteString(line + "\r\n")
	}
	if r.body != nil || (r.method != "GET" && r.method != "DELETE") {
		b.WriteString("Content-Length: " + strconv.Itoa(len(r.body)) + "\r\n")
	}
	b.WriteString("\r\n")
	return append([]byte(b.String()), r.body...)
}

// fill puts the session's secrets into a body of JSON, in place of {name}.
func (s *Session) fill(body []byte) []byte {
	if len(s.Secrets) == 0 || body == nil {
		return body
	}
	var places []string
	for name, value := range s.Secrets {
		places = append(places, "{"+name+"}", kit.JSONText(value))
	}
	return []byte(strings.NewReplacer(places...).Replace(string(body)))
}

// headers returns the lines "Name: value": the protocol's, then the session's, sorted.
func (r request) headers(s *Session) []string {
	media := r.media
	if media == "" {
		media = jsonMedia
	}
	own := [][2]string{{"User-Agent", "tare"}, {"Accept", media}}
	if r.body != nil {
		own = append(own, [2]string{"Content-Type", media})
	}
	if a := s.authorization(); a != "" {
		own = append(own, [2]string{"Authorization", a})
	}
	given := make(map[string]bool, len(s.Headers))
	for name := range s.Headers {
		given[strings.ToLower(name)] = true
	}
	var lines []string
	for _, h := range own {
		if !given[strings.ToLower(h[0])] {
			lines = append(lines, h[0]+": "+h[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		lines = append(lines, name+": "+s.Headers[name])
	}
	return lines
}

// authorization returns the credential of s as the header's value, empty without one. A token goes before a password.
func (s *Session) authorization() string {
	switch {
	case s.Token != "":
		return "Bearer " + s.Token
	case s.Username != "" || s.Password != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(s.Username+":"+s.Password))
	}
	return ""
}

// String keeps secrets out of anything that prints a session.
func (s Session) String() string { return "session of " + s.Host + s.Base }

// GoString does the same.
func (s Session) GoString() string { return s.String() }

// posted returns a POST of document as JSON, or of raw where the question brings its own body.
func posted(path, media string, raw json.RawMessage, document any) (request, error) {
	r := request{method: "POST", path: path, media: media, body: raw}
	if len(raw) > 0 {
		return r, nil
	}
	body, err := json.Marshal(document)
	if err != nil {
		return request{}, fmt.Errorf("render the request: %w", err)
	}
	r.body = body
	return r, nil
}

// below returns path as it stands below a URL: with one slash before it and none behind; otherwise without one.
func below(path, otherwise string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return otherwise
	}
	return "/" + path
}
