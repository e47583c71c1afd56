package cli

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/kit"
)

// serverFlags are the flags of commands that ask a server: its protocol, and the request as curl takes it.
type serverFlags struct {
	adapter       string
	headers, data []string
	method        string

	insecure      bool
	ca, cert, key string

	sent sentRequest // what parse has read
}

func (s *serverFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&s.adapter, "adapter", "",
		"protocol that the server speaks, as 'tare list adapters' names it (default: the server is asked)")
	f.StringArrayVarP(&s.headers, "header", "H", nil, "header of the request, 'NAME: VALUE'; a secret is given by its "+
		"place: 'NAME: @FILE', 'NAME: env:VARIABLE', 'Authorization: Bearer @FILE'; repeatable")
	f.StringVarP(&s.method, "request", "X", "", "method of the request (default GET, with -d POST)")
	f.StringArrayVarP(&s.data, "data", "d", nil, "body of the request: text, or @FILE, whose content is not kept in the "+
		"record; several are joined by &")
	f.BoolVarP(&s.insecure, "insecure", "k", false, "do not verify the server's certificate; the report says so")
	f.StringVar(&s.ca, "cacert", "", "file with the certificates of the authorities to trust (PEM)")
	f.StringVar(&s.cert, "cert", "", "file with the client certificate (PEM)")
	f.StringVar(&s.key, "key", "", "file with the private key of the client certificate (PEM; default: that of --cert)")
}

// serverCommand completes a command that asks the server at a URL the experiment that compose writes.
func (a *app) serverCommand(c *cobra.Command, f *oneLineFlags,
	compose func(context.Context, string, *serverFlags, *oneLineFlags) (area.Composed, error),
) *cobra.Command {
	var server serverFlags
	c.Args = exactly("URL")
	c.RunE = func(c *cobra.Command, args []string) error {
		x, err := compose(c.Context(), args[0], &server, f)
		if err != nil {
			return err
		}
		return a.ask(c.Context(), x, f)
	}
	f.add(c)
	server.add(c)
	return c
}

// requestHelp is the part of a command's help about the request.
const requestHelp = "" +
	"-H, -X and -d describe the request, as for curl: then the server is not asked for its protocol,\n" +
	"and its answers are judged by their status alone. The record holds headers and texts of -d, so a\n" +
	"secret is given by its place: -H 'Authorization: Bearer @FILE'. -k, --cacert, --cert and --key are\n" +
	"those of curl, too.\n\n"

// A sentRequest is what the flags say about the request to a server.
type sentRequest struct {
	area.Request

	headers map[string]string
	secrets map[string]area.Secret
	tls     *kit.TLS
}

// given returns the flags that are given, as a person writes them.
func (s *serverFlags) given() (names []string) {
	for _, x := range []struct {
		name string
		is   bool
	}{
		{"--adapter", s.adapter != ""},
		{"-H", len(s.headers) > 0},
		{"-X", s.method != ""},
		{"-d", len(s.data) > 0},
		{"-k", s.insecure},
		{"--cacert", s.ca != ""},
		{"--cert", s.cert != ""},
		{"--key", s.key != ""},
	} {
		if x.is {
			names = append(names, x.name)
		}
	}
	return names
}

// describesRequest reports whether the flags say which request is sent.
func (s *serverFlags) describesRequest() bool {
	return s.method != "" || len(s.headers)+len(s.data) > 0
}

// parse reads the flags. It asks nobody. Its errors quote no value that may be a secret.
func (s *serverFlags) parse() error {
	r := sentRequest{headers: map[string]string{}, secrets: map[string]area.Secret{}}
	r.Method = strings.ToUpper(s.method)
	for _, text := range s.headers {
		if err := r.addHeader(text); err != nil {
			return err
		}
	}
	for _, text := range s.data {
		part, err := bodyPart(text)
		if err != nil {
			return err
		}
		r.Body = append(r.Body, part)
	}
	if len(r.Body) > 0 && !r.has("Content-Type") {
		r.headers["Content-Type"] = "application/x-www-form-urlencoded" // as curl does
	}
	t, err := s.parseTLS()
	if err != nil {
		return err
	}
	r.tls = t
	s.sent = r
	return nil
}

// bodyPart reads a value of -d.
func bodyPart(text string) (area.BodyPart, error) {
	file, isFile := strings.CutPrefix(text, "@")
	switch {
	case isFile && (file == "" || file == "-"):
		return area.BodyPart{}, usage("-d @%s: name a file: every call sends what it holds", file)
	case isFile:
		return area.BodyPart{File: file}, nil
	case !utf8.ValidString(text):
		return area.BodyPart{}, usage("-d: the text is not UTF-8; write it to a file: -d @FILE")
	}
	return area.BodyPart{Text: text}, nil
}

// parseTLS reads the flags about TLS; nil: none is given.
func (s *serverFlags) parseTLS() (*kit.TLS, error) {
	switch {
	case s.insecure && s.ca != "":
		return nil, usage("-k verifies no certificate, so --cacert has no effect; leave out one of them")
	case s.key != "" && s.cert == "":
		return nil, usage("--key: a private key needs its certificate: --cert FILE")
	case !s.insecure && s.ca == "" && s.cert == "":
		return nil, nil //nolint:nilnil // no flag is a usual case
	}
	t := &kit.TLS{CA: s.ca, Cert: s.cert, Insecure: s.insecure}
	if s.cert != "" {
		t.Key = area.Secret{File: cmp.Or(s.key, s.cert)}
	}
	return t, nil
}

// lines writes what the target section has for every protocol: headers and TLS.
func (r *sentRequest) lines() string {
	var out strings.Builder
	entries := func(key string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(&out, "  %s: {%s}\n", key, strings.Join(items, ", "))
		}
	}
	var headers, secrets, trust []string
	for _, name := range sortedKeys(r.headers) {
		headers = append(headers, kit.Quote(name)+": "+kit.Quote(r.headers[name]))
	}
	for _, name := range sortedKeys(r.secrets) {
		secrets = append(secrets, kit.Quote(name)+": "+kit.QuoteSecret(r.secrets[name]))
	}
	if t := r.tls; t != nil {
		for key, file := range map[string]string{"ca": t.CA, "cert": t.Cert} {
			if file != "" {
				trust = append(trust, key+": "+kit.Quote(file))
			}
		}
		slices.Sort(trust)
		if !t.Key.IsZero() {
			trust = append(trust, "key: "+kit.QuoteSecret(t.Key))
		}
		if t.Insecure {
			trust = append(trust, "insecure: true")
		}
	}
	entries("headers", headers)
	entries("secret_headers", secrets)
	entries("tls", trust)
	return out.String()
}

// isOfRequest reports whether the line of a path comes from the flags about headers, TLS and what must be refused.
func isOfRequest(path string) bool {
	section := strings.TrimPrefix(path, "target.")
	if i := strings.IndexAny(section, ".["); i >= 0 {
		section = section[:i]
	}
	return slices.Contains([]string{"headers", "secret_headers", "tls", "trespass"}, section)
}

// plain returns the adapter that sends the request of a command line.
func (a *app) plain(u *url.URL, server *serverFlags) (spoken, error) {
	flags := strings.Join(slices.DeleteFunc(server.given(), func(flag string) bool {
		return !slices.Contains([]string{"-H", "-X", "-d"}, flag)
	}), ", ")
	at, speak := a.speaker(func(x area.Adapter) bool { return x.Request != nil })
	if at.area == "" {
		return at, usage("%s: no area of this tare sends the request of a command line (%s); name the protocol: --adapter "+
			"NAME ('tare list adapters')", flags, strings.Join(speak, ", "))
	}
	at.url, at.isPlain = u.String(), true
	a.tell("%-9s %s: the request is that of the command line (%s); answers are judged by their status alone\n", "adapter",
		at.adapter.Name, flags)
	return at, nil
}

// with adds what the flags say about the request.
func (s spoken) with(server *serverFlags) (spoken, error) {
	r := server.sent
	r.ByStatus = s.isPlain
	write := s.adapter.Request
	switch {
	case write != nil:
		lines, err := write(r.Request)
		if err != nil {
			return spoken{}, err
		}
		s.options += lines
	case r.Method != "" || len(r.Body) > 0:
		return spoken{}, usage("-X and -d do not go with %s, whose protocol prescribes method and body; leave them out, or "+
			"leave out --adapter", s.adapter.Name)
	case !r.Bearer.IsZero():
		return spoken{}, usage("-H Authorization: with %s the file or the variable must hold the whole value, 'Bearer …': "+
			"-H 'Authorization: @FILE'", s.adapter.Name)
	}
	s.options += r.lines()
	return s, nil
}
