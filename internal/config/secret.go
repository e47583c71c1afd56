package config

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/internal/kit"
)

// A Secret refers to a value that must not be written into a file. See area.Secret.
type Secret = area.Secret

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// secret decodes {env: NAME} or {file: path}. Anything else may be the secret itself, and is not quoted.
func (w *walker) secret(path string, n *yaml.Node, v reflect.Value) {
	resolved, ok := w.resolve(path, n)
	if !ok || !isLocator(resolved) {
		w.veil.over(w.source, n)
		if ok {
			w.errorAt(path, resolved, "%sa secret must not stand in the file; write {env: NAME} or {file: path}", label(path))
		}
		return
	}
	var s Secret
	for _, f := range w.fields(path, n) {
		if f.name == "env" {
			s.Env = w.locate(f, envName, "the name of an environment variable")
		} else {
			s.File = w.path(f.path, f.value, w.locate(f, nil, "the path of a file"))
		}
	}
	if s.Env != "" && s.File != "" {
		w.errorAt(path, resolved, "%sname one place, not two: {env: NAME} or {file: path}", label(path))
	}
	v.Set(reflect.ValueOf(s))
}

// isLocator reports whether n has the form of a reference. {hunter2} is a mapping, too.
func isLocator(n *yaml.Node) bool {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i]; k.Kind != yaml.ScalarNode || (k.Value != "env" && k.Value != "file") {
			return false
		}
	}
	return true
}

func (w *walker) locate(f field, pattern *regexp.Regexp, want string) string {
	n, ok := peek(f.value)
	if !ok || n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" ||
		(pattern != nil && !pattern.MatchString(n.Value)) {
		w.veil.over(w.source, f.value)
		w.errorAt(f.path, f.value, "%swant %s", label(f.path), want)
		return ""
	}
	return n.Value
}

// guard hides the value of a field whose name suggests a secret.
func (w *walker) guard(f field) {
	if secretKey.MatchString(f.name + ": x") {
		w.veil.over(w.source, f.value)
	}
}

// conceal hides a value that is not valid for a guarded type.
func (w *walker) conceal(t reflect.Type, n *yaml.Node) {
	if g, ok := reflect.TypeAssert[area.Guarded](reflect.New(t)); ok && g.MayBeSecret() {
		w.veil.over(w.source, n)
	}
}

// A veil records which parts of the source must not be printed.
type veil struct {
	from  map[int]int // by line: the first hidden column
	after int         // all lines after this one are hidden; 0: none
	seen  map[*yaml.Node]bool
}

// over hides a value, and the value that it is an alias of.
func (v *veil) over(source []byte, n *yaml.Node) {
	if n == nil || v.seen[n] {
		return
	}
	v.seen[n] = true
	if old, ok := v.from[n.Line]; !ok || n.Column < old {
		v.from[n.Line] = n.Column
	}
	if line, _ := lineOf(source, n.Line); n.Kind == yaml.ScalarNode && !strings.Contains(line, n.Value) {
		// It continues below, and its end is unknown.
		if v.after == 0 || n.Line < v.after {
			v.after = n.Line
		}
	}
	v.over(source, n.Alias)
	for _, c := range n.Content {
		v.over(source, c)
	}
}

// column is where the hidden part of a line begins; 0 if nothing is hidden.
func (v *veil) column(line int) int {
	if v.after > 0 && line > v.after {
		return 1
	}
	return v.from[line]
}

var (
	jwt        = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]+`)
	privateKey = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----`)
	urlSecret  = regexp.MustCompile(`://[^/\s@:]*:[^/\s@{$][^/\s@]*@`)
	// authorization matches a header with its credential.
	authorization = regexp.MustCompile(
		`(?i)\bauthorization\\?["']?\s*[:=]\s*\\?["']?(?:bearer|basic|token)\s+[^\s"'{$<][^\s"']{3,}`)
	// issued matches tokens whose form shows the issuer: GitHub, GitLab, Slack, Vault, Google, Stripe, npm.
	issued = regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{22}|` +
		`glpat-[A-Za-z0-9_-]{20}|xox[abeoprs]-[A-Za-z0-9-]{10}|hv[sbr]\.[A-Za-z0-9_-]{20}|` +
		`ya29\.[A-Za-z0-9_-]{20}|AIza[A-Za-z0-9_-]{35}|sk_live_[A-Za-z0-9]{16}|npm_[A-Za-z0-9]{36})`)
)

// credential says what kind of secret a value plainly is; "" if none.
func credential(value string) string {
	switch {
	case jwt.MatchString(value), issued.MatchString(value):
		return "a token"
	case privateKey.MatchString(value):
		return "a private key"
	case urlSecret.MatchString(value):
		return "a URL with a password"
	case authorization.MatchString(value):
		return "an Authorization header"
	}
	if name, found := kit.LiteralSecret(value); found {
		return "the value of " + quote(name)
	}
	return ""
}

// noCredential rejects a secret value of an entry whose name suggests a secret.
func (w *walker) noCredential(f field) {
	n, ok := peek(f.value)
	if !ok || n.Kind != yaml.ScalarNode || !kit.IsSecretName(f.name) || !kit.IsLiteral(n.Value) {
		return
	}
	w.veil.over(w.source, f.value)
	w.errorAt(f.path, f.value, "%sthis is the name of a secret; a file must not hold one%s", label(f.path),
		insteadOfSecret)
}

// insteadOfSecret is the advice for a secret in the file.
const insteadOfSecret = ", since it is copied into the record: say where it is, {env: NAME} or {file: path}, in a " +
	"field for secrets"

// comments rejects credentials in what the parser ignores: the source is copied into the record, including comments.
func (w *walker) comments() {
	i := 0
	for line := range strings.Lines(string(w.source)) {
		i++
		found := jwt.MatchString(line) || issued.MatchString(line) || privateKey.MatchString(line)
		if !found || slices.ContainsFunc(w.diags, func(d Diagnostic) bool {
			return d.Line == i &&
				d.Severity == area.Error
		}) {
			continue
		}
		n := &yaml.Node{Kind: yaml.ScalarNode, Line: i, Column: 1}
		w.veil.over(w.source, n)
		w.errorAt("", n, "this line holds a token or a private key; a file must not hold one%s", insteadOfSecret)
	}
}
