package own

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	node "go.yaml.in/yaml/v4"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The servers beside the API server that a policy can have Kyverno ask.
const (
	asksRegistry = "which asks registries about images"
	asksServer   = "which asks another server"
	makesAny     = "which may create or change what asks other servers, such as a webhook"
)

// asking are the fields by which a policy in YAML has Kyverno ask other servers: registries, and those of signatures
// and keys.
var asking = map[string]string{
	"imageRegistry": asksRegistry, "verifyImages": asksRegistry, "manifests": asksServer, "service": asksServer,
}

// reaches says which other servers a policy of Kyverno's asks while a request waits, or may have the API server or
// Kyverno ask by an object of its making; "": none. The policy may be a stranger's, and every request of the load would
// ask them. In YAML it may have fields only of which it is known that they ask nobody else.
func reaches(o object) string {
	// Of a GeneratingPolicy only its run shows of which kind its objects are.
	found := map[string]bool{makesAny: isGeneratingPolicy(o.Unstructured)}
	for _, k := range madeBy(o.Unstructured) {
		found[makesAny] = found[makesAny] || MayAsk(k)
	}
	var unknown string
	if IsCEL(o.Unstructured) {
		inside(o.Object["spec"], func(key string, value any) {
			if text, _ := value.(string); strings.HasSuffix(strings.ToLower(key), "expression") {
				found[calls(text)] = true
			}
		})
	} else {
		quiet.each(o.Object["spec"], func(name string, value any, known bool) {
			call, _ := value.(tree)
			switch {
			case known && name == "apiCall":
				found[callReaches(call)] = true
			case known:
			case asking[name] != "":
				found[asking[name]] = true
			default:
				at := o.at.keyPlace(func(key *node.Node) bool { return key.Value == name }, "spec")
				unknown = fmt.Sprintf("which has the field %s at %s, which tare does not know: it is misspelt, or the policy may "+
					"ask another server by it", name, at)
			}
		})
		found[asksServer] = found[asksServer] || strings.Contains(fmt.Sprint(o.Object["spec"]), asksNames)
	}
	for _, what := range []string{asksServer, asksRegistry, makesAny} {
		if found[what] {
			return what
		}
	}
	return unknown
}

// asksNames is the function of Kyverno's in JMESPath that asks a name server.
const asksNames = "is_external_url"

// callReaches says what a call of a policy's to the API server asks of others, as far as its text shows; "": nothing.
// The API server of a plane of tare's calls nobody for it, whatever a variable holds.
func callReaches(call tree) string {
	path, _ := call["urlPath"].(string)
	switch {
	case forwarded.MatchString(path):
		return asksServer
	case call["method"] != nil && call["method"] != "GET" && !isReview(path):
		return makesAny
	}
	return ""
}

// forwarded is a path at which an API server asks a node, a pod or a service.
var forwarded = regexp.MustCompile(`/(nodes|pods|services)/[^/]+/(proxy|log)\b`)

// inside calls do for each member of the maps in a value.
func inside(value any, do func(key string, value any)) {
	switch v := value.(type) {
	case tree:
		for key, in := range v {
			do(key, in)
			inside(in, do)
		}
	case []any:
		for _, in := range v {
			inside(in, do)
		}
	}
}

// isReview reports whether a path is that of an access review, which creates nothing.
func isReview(path string) bool {
	kind, ok := strings.CutPrefix(path, "/apis/authorization.k8s.io/v1/")
	reviews := []string{"subjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"}
	return ok && slices.Contains(reviews, kind)
}

const (
	nodeKind = "Node"
	// anyKind are characters of what is no kind, but a pattern, a variable or a reference of Kyverno's.
	anyKind = "{*?$"
)

// MayAsk reports whether an object of a kind may have the API server, its controllers or an engine ask another server,
// or whether the kind is not known before a request comes.
func MayAsk(k schema.GroupVersionKind) bool {
	kind, _, _ := strings.Cut(k.Kind, ".") // Kyverno takes the rest for a subresource
	return strings.ContainsAny(k.String(), anyKind) || decides(k) || slices.Contains(policyKinds, kind) ||
		slices.Contains([]string{"apiregistration.k8s.io", "apiextensions.k8s.io"}, k.Group) ||
		slices.Contains(kindsThatAsk, kind) ||
		slices.Contains([]string{"Policy", "Provider", "Connection"}, kind) && k.Group == ""
}

// kindsThatAsk are kinds, besides those of policies, of which MayAsk is true in any group.
var kindsThatAsk = []string{
	"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService", "CustomResourceDefinition",
	"GlobalContextEntry", nodeKind, "StorageClass",
}

// kindNamed is the kind of a resource if MayAsk may be true for it; else it is the resource.
func kindNamed(resource string) string {
	resource, _, _ = strings.Cut(resource, "/")
	for _, kind := range slices.Concat(policyKinds, kindsThatAsk) {
		if plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind}); plural.Resource == resource {
			return kind
		}
	}
	return resource
}

// calls says which other servers an expression in CEL asks by what Kyverno adds to the language: the variable http, the
// method GetMetadata of the variable image, and Post of resource, which creates anything; "": none.
func calls(expression string) string {
	var server, registry, makes bool
	identifiers(expression, func(name, after string) {
		server = server || name == "http"
		registry = registry || name == ".GetMetadata"
		makes = makes || name == ".Post" && !reviewed.MatchString(after)
	})
	switch {
	case server:
		return asksServer
	case registry:
		return asksRegistry
	case makes:
		return makesAny
	}
	return ""
}

// reviewed is how the arguments of a Post begin that asks for an access review.
var reviewed = regexp.MustCompile(`^\s*\(\s*["']authorization\.k8s\.io/v1["']\s*,\s*["'](subject|selfsubject)access` +
	`reviews["']\s*,`)

// identifiers calls found for each name in an expression outside of texts and comments, with a dot before it if it is
// that of a member: one that follows a value, since .name alone is a variable, too; and with what comes after it.
func identifiers(expression string, found func(name, after string)) {
	value, member := false, false // what came last
	for s := expression; s != ""; {
		n := len(word(s))
		switch {
		case n > 0 && n < len(s) && isQuote(s[n]) && isPrefix(s[:n]):
			s = afterText(s[n:], strings.ContainsAny(s[:n], "rR"))
			value, member = true, false
		case n > 0:
			name := s[:n]
			if member {
				name = "." + name
			}
			s = s[n:]
			found(name, s)
			value, member = true, false
		case isQuote(s[0]):
			s = afterText(s, false)
			value, member = true, false
		case strings.HasPrefix(s, "//"):
			_, s, _ = strings.Cut(s, "\n")
		case s[0] == '`':
			_, s, _ = strings.Cut(s[1:], "`")
			value, member = true, false
		case strings.ContainsRune(" \t\r\n\f", rune(s[0])), s[0] == '?' && member:
			s = s[1:]
		default:
			member = s[0] == '.' && value
			value = strings.ContainsRune(")]}", rune(s[0]))
			s = s[1:]
		}
	}
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }

// word is the name or number that a text begins with.
func word(s string) string {
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 0 {
		end = len(s)
	}
	return s[:end]
}

// isPrefix reports whether letters before a quote belong to the text: raw ones and bytes.
func isPrefix(s string) bool {
	return slices.Contains([]string{"r", "b", "rb", "br"}, strings.ToLower(s))
}

// afterText is what comes after a text that s begins with, in single or triple quotes.
func afterText(s string, raw bool) string {
	quote := s[:1]
	if three := strings.Repeat(quote, 3); strings.HasPrefix(s, three) {
		quote = three
	}
	for s = s[len(quote):]; s != ""; s = s[1:] {
		switch {
		case strings.HasPrefix(s, quote):
			return s[len(quote):]
		case s[0] == '\\' && !raw && len(s) > 1:
			s = s[1:]
		}
	}
	return ""
}
