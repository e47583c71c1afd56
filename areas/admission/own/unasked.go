package own

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields are what a policy, a binding, a constraint or a rule says of requests, by their paths in a file.
type fields map[string]field

// A field is a topic, and what is said of it.
type field struct {
	topic int
	text  string
	shown string // in place of its path, if that is not empty
	// further is one of several with each of which no more is permitted.
	further bool
}

// tells are the fields that only tell something; rules are parts of their own. An audit annotation is not among them:
// if it fails, so does the policy.
var tells = []string{"message", "messageExpression", "emitWarning", "reportProperties", "rules"}

// A topic is what fields say.
type topic struct {
	what   string
	fields []string
}

// topics are what fields say, in the words for it. Their values are compared as a whole.
var topics = []topic{
	{"which namespaces policies are about", []string{"namespaceSelector", "namespaces", "excludedNamespaces"}},
	{"which operations policies are about", []string{"operations"}},
	{"which objects policies are about", []string{
		"objectSelector", "labelSelector", "selector", "annotations", "names", "name", "resourceNames",
	}},
	{"whose requests policies are about, or under which conditions,", []string{
		"subjects", "roles", "clusterRoles", "matchConditions", "celPreconditions", "preconditions",
	}},
	{"what becomes of requests that policies cannot decide", []string{
		"failurePolicy", "timeoutSeconds", "webhookTimeoutSeconds", "parameterNotFoundAction",
	}},
	{"what policies do about what they object to", []string{
		"validationActions", "enforcementAction", "scopedEnforcementActions", "failureAction", "failureActionOverrides",
		"validationFailureAction", "validationFailureActionOverrides",
	}},
	{"when policies are evaluated", []string{"background", "admission", "evaluation", "skipBackgroundRequests"}},
	reads: {"what policies read beside the request", []string{
		"paramKind", "paramRef", "configMap", "apiCall", "globalReference", "imageRegistry", "clone", "cloneList",
	}},
	decision: {"what policies decide", []string{
		"validations", "expressions", "variables", "mutations", "parameters", "location", "context", "mutate", "generate",
		"pattern", "anyPattern", "deny", "foreach", "podSecurity", "assert", "manifests", "rego", "libs", "crd",
		"target", "engine",
	}},
	other: {"what else policies say of their requests", nil},
}

// The topics that are named by themselves.
const (
	reads = iota + 7
	decision
	other
)

// usual is what fields mean that are not there, or empty.
var usual = map[string]string{
	"failurePolicy": `"Fail"`, "matchPolicy": `"Equivalent"`, "scope": `"*"`, "enforcementAction": `"deny"`,
	"background": "true", "admission": "true", "validationFailureAction": `"Audit"`,
}

// sets are the fields of a match whose values are sets: with one more, it is about more requests.
var sets = append([]string{"operations", "namespaces"}, ofKinds...)

// ofKinds are those of them that say which kinds of objects are meant.
var ofKinds = []string{"kinds", "resources", "apiGroups", "apiVersions", "groups"}

// plain is a value of such a set that takes nothing away.
var plain = regexp.MustCompile(`^[\w*/.-]*$`)

// A growth says of what one more surely permits no more: of validations, of sets, and of those of kinds.
type growth struct{ validations, sets, kinds bool }

// add adds what stands at a path in a field.
func (p fields) add(more growth, in int, path, name string, value any) {
	is := slices.IndexFunc(topics, func(t topic) bool { return slices.Contains(t.fields, name) })
	topic := in
	if in == other && is >= 0 {
		topic = is
	}
	if strings.HasPrefix(name, "exclude") {
		more = growth{}
	}
	list, isList := value.([]any)
	members, isMap := value.(tree)
	all := words(value)
	isWords := isList && len(all) == len(list)
	switch {
	case isList && (name == "validations" || name == "expressions"):
		for _, v := range list {
			of, _ := v.(tree)
			p.putExpression(more.validations, topic, path, of["expression"])
		}
	case isWords && len(list) > 0 && slices.Contains(sets, name):
		further := more.sets && (more.kinds || !slices.Contains(ofKinds, name)) && !slices.ContainsFunc(all, takesAway)
		p[path] = field{topic: topic, text: "some"} // where none are listed, all are meant
		for _, word := range all {
			p.put(further, topic, path, word)
		}
	case isMap && topic == other:
		for key, member := range members {
			if _, isRules := member.([]any); isRules && path == "spec" && key == "rules" {
				continue // parts of their own
			}
			if !slices.Contains(tells, key) {
				p.add(more, topic, strings.TrimPrefix(path+"."+quoted(key), "."), key, member)
			}
		}
	case isList && topic == other && !isWords:
		for i, item := range list {
			at := fmt.Sprintf("%s[%d]", path, i)
			p[at] = field{topic: topic, text: "one", further: more.kinds}
			p.add(more, in, at, name, item)
		}
	case topic == decision: // an empty value decides, and so may an order
		if text, err := json.Marshal(value); err == nil {
			p[path] = field{topic: topic, text: string(text)}
		}
	case isList && len(list) == 0 && name == "controllers": // Kyverno takes an empty list for none, and no list for all
		p[path] = field{topic: topic, text: "none"}
	default:
		text, err := json.Marshal(sorted(value))
		if err == nil && !slices.Contains([]string{"null", "{}", "[]", `""`, usual[name]}, string(text)) {
			p[path] = field{topic: topic, text: string(text)}
		}
	}
}

// converted is the growth of a policy or a binding of the API server's, which converts requests to a version that it
// names: where one more is named, it sees those of that version as they are.
func (g growth) converted(o *unstructured.Unstructured) growth {
	for _, at := range []string{"matchConstraints", "matchResources"} {
		policy, _, _ := unstructured.NestedString(o.Object, "spec", at, "matchPolicy")
		rules, _, _ := unstructured.NestedSlice(o.Object, "spec", at, "resourceRules")
		exact := policy == "Exact" || len(rules) == 0
		g.kinds = g.kinds && exact
		g.sets = g.sets && (exact || len(rules) == 1)
	}
	return g
}

// unless is the growth of a policy, which is nothing if that changes objects.
func (g growth) unless(changes bool) growth {
	if changes {
		return growth{}
	}
	return g
}

// takesAway reports whether a value of a set may mean that others are not in it.
func takesAway(word string) bool { return !plain.MatchString(word) }

// put adds one of several values at a path.
func (p fields) put(further bool, topic int, path string, value any) {
	if text, err := json.Marshal(value); err == nil {
		shown := path + ": " + abbreviated(string(text))
		p[path+": "+string(text)] = field{topic, string(text), shown, further}
	}
}

// putExpression adds one of several expressions in CEL at a path, which is named as it stands there.
func (p fields) putExpression(further bool, topic int, path string, value any) {
	text, isText := value.(string)
	if !isText {
		p.put(further, topic, path, value)
		return
	}
	is, _ := json.Marshal(compactCEL(text)) // it is a string
	was, _ := json.Marshal(text)
	shown := path + ": " + abbreviated(string(was))
	p[fmt.Sprintf("%s: %x", path, sha256.Sum256(is))] = field{topic, string(is), shown, further}
}

// described are the beginnings of annotations and labels that are for people. Those without a domain are, too; what
// others mean to an engine, a deployer or a controller, such as not to install an object, or to delete it, is theirs.
var described = []string{
	"policies.kyverno.io/", "kyverno.io/kyverno-version", "kyverno.io/kubernetes-version", "metadata.gatekeeper.sh/",
	"kubernetes.io/description", "app.kubernetes.io/", "artifacthub.io/", "meta.helm.sh/", "helm.sh/chart", applied,
}

// applied is the annotation in which kubectl keeps what was applied last.
const applied = "kubectl.kubernetes.io/last-applied-configuration"

// autogen is the annotation that lists the controllers about which Kyverno makes rules.
const autogen = "pod-policies.kyverno.io/autogen-controllers"

// addMeta adds what the metadata say beside the name: owners, with which an object goes, and annotations and labels
// that may mean something to others than people. An object that names the state of a cluster is refused by another one.
func (p fields) addMeta(o *unstructured.Unstructured) {
	if o.GetResourceVersion()+string(o.GetUID()) != "" {
		p["metadata.resourceVersion, metadata.uid"] = field{topic: other, text: "there"}
	}
	for key, value := range metaOf(o) {
		pairs, isMap := value.(tree)
		if !isMap {
			text, _ := json.Marshal(value) // it was decoded from JSON
			p["metadata."+key] = field{topic: other, text: string(text)}
		}
		for pair, value := range pairs {
			isDescribed := slices.ContainsFunc(described, func(d string) bool { return strings.HasPrefix(pair, d) })
			if strings.Contains(pair, "/") && !isDescribed {
				text := fmt.Sprint(value)
				if pair == autogen {
					kinds := strings.Split(text, ",")
					slices.Sort(kinds)
					text = strings.Join(kinds, ",")
				}
				p["metadata."+key+"."+quoted(pair)] = field{topic: other, text: text}
			}
		}
	}
}

// metaOf are the metadata of an object without its name, and without what a cluster has added.
func metaOf(o *unstructured.Unstructured) tree {
	meta, _, _ := unstructured.NestedMap(bare(o).Object, "metadata")
	delete(meta, "name")
	unstructured.RemoveNestedField(meta, "annotations", applied)
	return meta
}

// abbreviated is a text that is short enough for a list, and differs from those of others.
func abbreviated(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%.4x)", strings.ToValidUTF8(text[:most], ""), sha256.Sum256([]byte(text)))
}

// sorted puts lists of words into an order: in policies they are sets.
func sorted(value any) any {
	switch v := value.(type) {
	case tree:
		out := tree{}
		for key, in := range v {
			out[key] = sorted(in)
		}
		return out
	case []any:
		if all := words(v); len(all) == len(v) {
			slices.Sort(all)
			return all
		}
		out := make([]any, len(v))
		for i, in := range v {
			out[i] = sorted(in)
		}
		return out
	}
	return value
}

// takes reports whether an object that decides about requests is put in force, if it can be.
func (s *Set) takes(o object) bool {
	k := o.GroupVersionKind()
	if isKyverno(k) {
		p := s.named(o.GetName())
		return p != nil && p.engine == o.Unstructured
	}
	return k.Group == group && slices.Contains(takenKinds, k.Kind) || EngineOf(o.Unstructured) != ""
}

// contents are those of objects, by their names: several may have one.
type contents map[string][]string

// add adds an object: its metadata, and what it holds if that is compared, with its status, which policies may read:
// of a kind without a subresource for it, it is what the file says.
func (c contents) add(o *unstructured.Unstructured, whole bool) {
	is := tree{}
	if whole {
		is = maps.Clone(o.Object)
	}
	is["metadata"] = metaOf(o)
	text, _ := json.Marshal(is) // it was decoded from JSON
	name := nameOf(o)
	c[name] = append(c[name], string(text)) // in their order: the last one stands
}

// differing are the names of the objects that differ from others, or that others have not.
func (c contents) differing(from contents) (out []string) {
	all := maps.Clone(from)
	maps.Copy(all, c)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !slices.Equal(c[name], from[name]) {
			out = append(out, name)
		}
	}
	return out
}

func nameOf(o *unstructured.Unstructured) string {
	if o.GetNamespace() != "" {
		return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
	}
	return o.GetKind() + " " + o.GetName()
}

// ignoresFailures reports whether a policy says that requests are permitted that it cannot decide.
func ignoresFailures(o *unstructured.Unstructured) bool {
	spec, _ := o.Object["spec"].(tree)
	webhook, _ := spec["webhookConfiguration"].(tree)
	return slices.ContainsFunc(append(sourcesInCEL(o), spec, webhook), func(in tree) bool {
		return in["failurePolicy"] == "Ignore"
	})
}

// delaysOthers reports whether an object is a policy that could have an engine answer too late, for which requests are
// permitted that another policy of a set's denies. What is in CEL has an allowance, but with Kyverno it asks servers.
func (s *Set) delaysOthers(o *unstructured.Unstructured, of *Set) bool {
	shares := func(p *Policy) bool { return p.FailsOpen() && !p.Mutates() }
	is := slices.ContainsFunc(s.Policies, func(p Policy) bool { return p.engine == o && shares(&p) })
	return is && !s.isInCEL(o) && slices.ContainsFunc(of.Policies, func(p Policy) bool {
		return shares(&p) && p.Engine() == EngineOf(o) && nameOf(p.engine) != nameOf(o)
	})
}

// isInCEL reports whether an object is a constraint of a template in CEL.
func (s *Set) isInCEL(o *unstructured.Unstructured) bool {
	return isConstraint(o.GroupVersionKind()) && slices.ContainsFunc(s.templates, func(t object) bool {
		return defines(t.Unstructured) == o.GetKind() && len(sourcesInCEL(t.Unstructured)) > 0
	})
}

// parts are those of the set, by their names, and the objects that decide about requests and that are left aside.
// What another set has in another order is in its.
func (s *Set) parts(like *Set) (parts map[string]fields, aside contents) {
	parts, aside = map[string]fields{}, contents{}
	policies, rules := map[string]*unstructured.Unstructured{}, map[string]tree{}
	for _, o := range like.deciding {
		policies[nameOf(o.Unstructured)] = o.Unstructured
		for _, rule := range rulesIn(o.Unstructured) {
			rules[ofRule(nameOf(o.Unstructured), rule)] = comparedRule(rule, nil)
		}
	}
	put := func(name string, of fields) {
		for n, first := 2, name; parts[name] != nil; n++ { // of another group, or twice in one policy
			name = fmt.Sprintf("%s#%d", first, n)
		}
		parts[name] = of
	}
	changing := s.changing()
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		if !s.takes(o) {
			aside.add(o.Unstructured, true)
			continue
		}
		all := fields{}
		_, changes := changing[name]
		apply, _, _ := unstructured.NestedString(o.Object, "spec", "applyRules")
		// One more may fail, which is ignored with what others deny, or be the first, after which others do not count. Of one
		// kind more of Kyverno's follows that it makes no rules about controllers of the one about pods.
		denies := !ignoresFailures(o.Unstructured) && !s.delaysOthers(o.Unstructured, s) && apply != "One"
		more := growth{validations: denies, sets: denies && !isKyverno(o.GroupVersionKind())}
		if more.kinds = more.sets; o.GroupVersionKind().Group == group {
			more = more.converted(o.Unstructured)
		}
		all.add(more.unless(changes), other, "spec", "spec", comparedSpec(o.Unstructured, policies[name]))
		all.addMeta(o.Unstructured)
		all["apiVersion"] = field{topic: other, text: o.GetAPIVersion()} // each has a schema and defaults of its own
		var order []string
		for _, rule := range rulesIn(o.Unstructured) {
			order = append(order, ofRule(name, rule))
			of := fields{}
			of.add(more.unless(changing[ofRule(name, rule)]), other, "", "", comparedRule(rule, rules[ofRule(name, rule)]))
			put(ofRule(name, rule), of)
		}
		if apply == "One" { // the first one
			all["spec.rules"] = field{topic: other, text: strings.Join(order, ", ")}
		}
		if len(all) > 1 || !isTemplate(o.GroupVersionKind()) { // a template acts by its constraints
			put(name, all)
		}
	}
	r := s.reader()
	for _, o := range s.passed {
		k := o.GroupVersionKind()
		if k.Version == "" || decides(k) || r.reads(o.Unstructured) || !isHarmless(o.Unstructured) {
			aside.add(o.Unstructured, true)
		}
	}
	for _, o := range s.beside {
		aside.add(o, true)
	}
	return parts, aside
}

// read are the parameters of the set's policies with the definitions of their kinds, which may give them values, what
// others may read, and the labels of namespaces.
func (s *Set) read() contents {
	out := contents{}
	for _, o := range slices.Concat(s.params, s.definitions, s.configMaps, s.asked) {
		out.add(o, true)
	}
	for _, o := range s.namespaces {
		out.add(o, false)
	}
	return out
}

// outside are the objects that decide about requests, or that policies read, and that the kustomization does not list.
func (s *Set) outside() contents {
	all, out := slices.Concat(s.params, s.configMaps), contents{}
	for _, o := range s.deciding {
		all = append(all, o.Unstructured)
	}
	for _, o := range all {
		if s.unlisted[o] {
			out[nameOf(o)] = []string{""}
		}
	}
	return out
}

func ofRule(policy string, rule tree) string {
	return fmt.Sprintf("%s (rule %v)", policy, rule["name"])
}

// changing are the parts that change objects, or make others: of what they make an exemption may follow.
func (s *Set) changing() map[string]bool {
	out := map[string]bool{}
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		rules := rulesIn(o.Unstructured)
		if len(rules) == 0 && (Mutates(o.Unstructured) || isGeneratingPolicy(o.Unstructured) ||
			o.GetKind() == mutatingBindingKind) {
			out[name] = s.takes(o)
		}
		for _, rule := range rules {
			out[ofRule(name, rule)] = s.takes(o) && (rule["mutate"] != nil || rule["generate"] != nil)
		}
	}
	return out
}

// renamed are the names that bindings of what validates, and constraints, have in other parts if they are equal but for
// the name: nothing refers to that, as bindings and exceptions do to a policy's.
func (s *Set) renamed(parts, others map[string]fields) map[string]string {
	out := map[string]string{}
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		binds := o.GetKind() == bindingKind
		if others[name] != nil || parts[name] == nil || !binds && !isConstraint(o.GroupVersionKind()) {
			continue
		}
		for other, is := range others {
			kind, _, _ := strings.Cut(other, " ")
			if parts[other] == nil && kind == o.GetKind() && maps.EqualFunc(is, parts[name], sayTheSame) {
				out[name] = other
			}
		}
	}
	return out
}

func sayTheSame(a, b field) bool { return a.topic == b.topic && a.text == b.text }

// orders are the rules that change objects, by the names of their policies: each is applied to what those before it
// made.
func (s *Set) orders() map[string][]string {
	changing, out := s.changing(), map[string][]string{}
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		for _, rule := range rulesIn(o.Unstructured) {
			if of := ofRule(name, rule); changing[of] {
				out[name] = append(out[name], of)
			}
		}
	}
	return out
}

// alsoIn are those of some names that are among others, in their order.
func alsoIn(names, others []string) (out []string) {
	for _, name := range names {
		if slices.Contains(others, name) {
			out = append(out, name)
		}
	}
	return out
}

// Unasked says in what a set differs from a base where it is not certain that this permits no more: in what its
// policies say of requests, in what they read, and in policies that the base alone has.
func (s *Set) Unasked(base *Set) (out []string) {
	parts, aside := s.parts(base)
	were, wereAside := base.parts(base)
	differ := make([][]string, len(topics))
	var missing []string
	renamed := base.renamed(were, parts)
	for _, name := range slices.Sorted(maps.Keys(were)) {
		is, ok := parts[cmp.Or(renamed[name], name)]
		if !ok {
			missing = append(missing, name)
			continue
		}
		for i, paths := range is.differing(were[name]) {
			if len(paths) > 0 {
				differ[i] = append(differ[i], fmt.Sprintf("%s (%s)", name, strings.Join(paths, ", ")))
			}
		}
	}
	orders := s.orders()
	for name, was := range base.orders() {
		if is := orders[name]; !slices.Equal(alsoIn(is, was), alsoIn(was, is)) {
			differ[other] = append(differ[other], name+" (spec.rules)")
		}
	}
	slices.Sort(differ[other])
	differ[reads] = append(differ[reads], s.read().differing(base.read())...)
	say := func(what string, names []string) {
		if len(names) > 0 {
			out = append(out, what+", and requests cannot show all that this permits: "+strings.Join(names, ", "))
		}
	}
	changed := base.changing()
	var added []string
	for name, is := range s.changing() {
		if is && !changed[name] {
			added = append(added, name)
		}
	}
	slices.Sort(added)
	had, delaying := slices.Collect(maps.Values(renamed)), []string{}
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		if were[name] == nil && !slices.Contains(had, name) && s.takes(o) && s.delaysOthers(o.Unstructured, base) {
			delaying = append(delaying, name)
		}
	}
	var rules []string // of one more may follow that Kyverno makes none about controllers of the others
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		for _, rule := range rulesIn(o.Unstructured) {
			if of := ofRule(name, rule); were[name] != nil && were[of] == nil && !slices.Contains(added, of) {
				rules = append(rules, of)
			}
		}
	}
	say("policies of the baseline's are missing", missing)
	say("rules are new in policies of the baseline's", rules)
	say("policies that change or make objects are new", added)
	say("policies are new that could delay their engine, with which what the others deny is permitted", delaying)
	for i, names := range differ {
		say(topics[i].what+" differs", names)
	}
	say("what kustomizations list differs", s.outside().differing(base.outside()))
	say("what tare leaves aside differs", aside.differing(wereAside))
	return out
}

// differing are the paths of the fields that differ from others, by what they say, as topics has it.
func (p fields) differing(from fields) [][]string {
	out := make([][]string, len(topics))
	all := maps.Clone(from)
	maps.Copy(all, p)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		is, ok := p[path]
		was, had := from[path]
		if ok != had && !is.further || is.text != was.text && had && ok {
			out[all[path].topic] = append(out[all[path].topic], cmp.Or(all[path].shown, path))
		}
	}
	for _, paths := range out {
		slices.Sort(paths)
	}
	return out
}
