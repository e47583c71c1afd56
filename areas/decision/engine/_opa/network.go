package main

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// The functions of Rego that reach other servers. Those of schemas do for references to other schemas, and read files
// for them, too.
const (
	send         = "http.send"
	lookup       = "net.lookup_ip_addr"
	verifySchema = "json.verify_schema"
	matchSchema  = "json.match_schema"
)

// errBeyond is why a request of a policy is not sent. The rule that makes it is then not true.
var errBeyond = errors.New("tare lets policies reach http and https on loopback only, follow no redirect, and take no " +
	"certificate or key from files or variables; embedded: {network: true} lets them do so, and reach all servers")

// errReference is why a schema is not taken.
var errReference = errors.New("tare lets a schema refer to its own parts only; embedded: {network: true} lets it refer to " +
	"others")

// stayOnLoopback keeps the policies of this process from other servers: they may be a stranger's, and every question of
// the load may ask those servers as well.
func stayOnLoopback() {
	sends := topdown.GetBuiltin(send)
	topdown.RegisterBuiltinFunc(send, func(ctx topdown.BuiltinContext, args []*ast.Term, out func(*ast.Term) error) error {
		if request, ok := args[0].Value.(ast.Object); !ok || !onLoopback(request) {
			return errBeyond
		}
		return sends(ctx, args, out)
	})
	topdown.RegisterBuiltinFunc(lookup, func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error {
		return errBeyond
	})
	for name, at := range map[string]int{verifySchema: 0, matchSchema: 1} {
		checks := topdown.GetBuiltin(name)
		topdown.RegisterBuiltinFunc(name, func(ctx topdown.BuiltinContext, args []*ast.Term, out func(*ast.Term) error) error {
			if refersToOthers(args[at].Value) {
				return errReference
			}
			alone := ast.Capabilities{AllowNet: []string{}}
			if ctx.Capabilities != nil {
				alone.Builtins, alone.Features = ctx.Capabilities.Builtins, ctx.Capabilities.Features
			}
			ctx.Capabilities = &alone // should a name of its own lead it elsewhere
			return checks(ctx, args, out)
		})
	}
}

// refersToOthers reports whether a schema, or the JSON text of one, refers to something outside of it. What cannot be
// read is refused by the function itself.
func refersToOthers(schema ast.Value) bool {
	text, ok := schema.(ast.String)
	if !ok {
		all, err := ast.JSON(schema)
		return err != nil || holdsReference(all)
	}
	var all any
	return json.Unmarshal([]byte(text), &all) == nil && holdsReference(all)
}

func holdsReference(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, in := range v {
			at, isText := in.(string)
			elsewhere := key == "$ref" && !strings.HasPrefix(at, "#") ||
				(key == "$id" || key == "id") && strings.HasPrefix(strings.ToLower(at), "file:")
			if isText && elsewhere || holdsReference(in) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsReference)
	}
	return false
}

// permitted are the parts of a request that say nothing of files and variables of this host: a private key from there
// would give the policy the rights of its owner.
var permitted = []string{
	"method", "url", "body", "raw_body", "headers", "enable_redirect", "force_json_decode", "force_yaml_decode", "timeout",
	"cache", "force_cache", "force_cache_duration_seconds", "caching_mode", "cache_ignored_headers", "raise_error",
	"max_retry_attempts", "tls_use_system_certs", "tls_ca_cert", "tls_client_cert", "tls_client_key",
	"tls_insecure_skip_verify", "tls_server_name",
}

// onLoopback reports whether a request of http.send goes to this host and nowhere else, and takes nothing from it. A
// socket of a Unix domain can be that of a daemon which does what root may.
func onLoopback(request ast.Object) bool {
	for _, key := range request.Keys() {
		if name, ok := key.Value.(ast.String); !ok || !slices.Contains(permitted, string(name)) {
			return false
		}
	}
	text := func(name string) ast.Value {
		if v := request.Get(ast.StringTerm(name)); v != nil {
			return v.Value
		}
		return nil
	}
	if redirects := text("enable_redirect"); redirects != nil && redirects.Compare(ast.Boolean(false)) != 0 {
		return false
	}
	at, ok := text("url").(ast.String)
	if !ok {
		return false
	}
	u, err := url.Parse(string(at))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// reaching are the functions that reach other servers among those that the policies call.
func reaching(compiler *ast.Compiler) (names []string) {
	if compiler.Required == nil {
		return nil
	}
	for _, b := range compiler.Required.Builtins {
		if b.Name == send || b.Name == lookup {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	return names
}
