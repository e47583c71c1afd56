package own

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fields are those of a policy, a binding, a constraint or a rule that tare's requests do not try, by their paths in a
// file. Requests create objects of common kinds in one namespace, as one user; selectors, lists of namespaces,
// operations and subjects make no difference to them.
type fields map[string]field

// A field is a topic, and what is said of it.
type field struct {
	topic int
	text  string
	// further is one of several that must all hold: with one more, no more is permitted.
	further bool
}

// tells are the fields that only tell something; rules are parts of their own. An audit annotation is not among them: one
// that fails is a failure of the policy.
var tells = []string{"message", "messageExpression", "emitWarning", "reportProperties", "rules"}

// opened are the fields in whose values others are looked for, although requests try most of them.
var opened = []string{
	"validations", "expressions", "mutate", "generate", "foreach", "context", "cel", "targets", "paramRef",
}

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
	// Of a policy that requests show these are left to them.
	tried: {"what policies decide that requests do not show in force", []string{
		"validations", "expressions", "variables", "mutations", "parameters", "location", "context", "mutate", "generate",
		"pattern", "anyPattern", "deny", "foreach", "cel", "podSecurity", "assert", "manifests", "rego", "libs", "crd",
		"target", "engine",
	}},
	other: {"what else policies say of their requests", nil},
}

// The topics of which others may be part, and the others.
const (
	reads = iota + 7
	tried
	other
)

// A Shown says what requests have shown of policies under two sets of them.
type Shown struct {
	Policies map[string]bool // by their names; rules by RuleName, and expressions by ExpressionName
	// Kinds are the kinds of the objects of these requests, with their resources and groups.
	Kinds map[string]map[string]bool
	base  *Set
}

// RuleName is what a rule of a policy is called by.
func RuleName(policy, rule string) string { return policy + "/" + rule }

// ExpressionName is what one expression of several of a policy's is called by.
func ExpressionName(policy, expression string) string { return policy + "\x00" + expression }

// IsExpression reports whether a name is one of ExpressionName.
func IsExpression(name string) bool { return strings.Contains(name, "\x00") }

// Expressions are those of a policy's expressions that a denial names by their message, which no other expression of
// the policy has. An expression with a messageExpression is never among them, since its message is not known.
func (f *InForce) Expressions(policy, said string) (out []string) {
	p := f.named(policy)
	if p == nil {
		return nil
	}
	words := map[string][]string{}
	for _, v := range p.validations() {
		message, _ := v["message"].(string)
		expression, _ := v["expression"].(string)
		if v["messageExpression"] == nil {
			is := cmp.Or(strings.TrimSpace(message), "failed expression: "+strings.TrimSpace(expression))
			words[is] = append(words[is], expression)
		}
	}
	const telling = 12 // letters: shorter words may stand in any denial
	for is, of := range words {
		whole := strings.HasSuffix(said, " denied request: "+is)
		if len(of) == 1 && (whole || len(is) >= telling && strings.Contains(said, is)) {
			out = append(out, of...)
		}
	}
	return out
}

// validations are the policy's expressions in CEL that may deny a request, with their messages.
func (p *Policy) validations() (out []tree) {
	add := func(list any) {
		all, _ := list.([]any)
		for _, v := range all {
			if v, ok := v.(tree); ok {
				out = append(out, v)
			}
		}
	}
	if p.engine == nil {
		for i := range p.Spec.Validations {
			v := &p.Spec.Validations[i]
			is := tree{"expression": v.Expression, "message": v.Message}
			if v.MessageExpression != "" {
				is["messageExpression"] = v.MessageExpression
			}
			out = append(out, is)
		}
		return out
	}
	spec, _ := p.engine.Object["spec"].(tree)
	add(spec["validations"])
	for _, rule := range rulesIn(p.engine) {
		list, _, _ := unstructured.NestedFieldNoCopy(rule, "validate", "cel", "expressions")
		add(list)
	}
	return out
}

// of is what is shown of a policy, or of a rule of it: of a rule that changes or makes objects, or is alone, what is of
// the policy.
func (s Shown) of(policy string, rule any) shown {
	name := policy
	if p := s.base.named(policy); p != nil && p.engine != nil {
		rules := rulesIn(p.engine)
		if is := slices.IndexFunc(rules, func(r tree) bool { return r["name"] == rule }); is >= 0 && len(rules) > 1 &&
			rules[is]["validate"] != nil {
			name = RuleName(policy, fmt.Sprint(rule))
		}
	}
	out := shown{acts: s.Policies[name], kinds: s.Kinds[name]}
	if p := s.base.named(policy); p != nil && len(p.validations()) > 1 {
		out.expression = func(text string) bool { return s.Policies[ExpressionName(policy, text)] }
	}
	return out
}

// all is that of all policies of a sort, if there are any.
func (s Shown) all(sort func(p *Policy) bool) shown {
	n, acts := 0, true
	for i := range s.base.Policies {
		if p := &s.base.Policies[i]; sort(p) {
			n, acts = n+1, acts && s.Policies[p.Name]
		}
	}
	return shown{acts: acts && n > 0}
}

// shown is what is shown of one.
type shown struct {
	acts       bool
	kinds      map[string]bool
	expression func(text string) bool // whether one of the base's several expressions is; nil: it has no more than one
}

// showsAll reports whether requests show each of several expressions; one alone is what they show of a policy.
func (s shown) showsAll(expressions any) bool {
	list, _ := expressions.([]any)
	return s.expression == nil || !slices.ContainsFunc(list, func(v any) bool { return !s.shows(v) })
}

// shows reports whether a request shows one of several expressions.
func (s shown) shows(validation any) bool {
	v, _ := validation.(tree)
	text, isText := v["expression"].(string)
	return isText && s.expression(text)
}

// usual is what fields mean that are not there, or empty.
var usual = map[string]string{
	"failurePolicy": `"Fail"`, "matchPolicy": `"Equivalent"`, "scope": `"*"`, "enforcementAction": `"deny"`,
	"background": "true", "admission": "true", "validationFailureAction": `"Audit"`,
}

// topicOf is what a field says that is part of one with another topic.
func topicOf(name string, in int) int {
	topic := slices.IndexFunc(topics[:other], func(t topic) bool { return slices.Contains(t.fields, name) })
	switch {
	case in == other && topic < 0:
		return other
	case in == other, topic == reads, name == "preconditions", name == "parameterNotFoundAction":
		return topic
	}
	return in
}

// add adds what stands at a path in a field.
func (p fields) add(of shown, in int, path, name string, value any) {
	topic := topicOf(name, in)
	list, isList := value.([]any)
	members, isMap := value.(tree)
	parts := topic == other || slices.Contains(opened, name)
	switch {
	case topic == tried && of.acts && isList && of.expression != nil && (name == "validations" || name == "expressions"):
		for _, v := range list {
			if of.shows(v) {
				continue
			}
			of, _ := v.(tree)
			text, err := json.Marshal(sorted(of["expression"]))
			if err == nil {
				p[fmt.Sprintf("%s: %s", path, abbreviated(string(text)))] = field{topic, string(text), true}
			}
		}
	case isMap && parts:
		for key, member := range members {
			of := of
			if key == "variables" { // expressions that no request shows may use them
				of.acts = of.acts && of.showsAll(members["validations"]) && of.showsAll(members["expressions"])
			}
			if !slices.Contains(tells, key) {
				p.add(of, topic, strings.TrimPrefix(path+"."+key, "."), key, member)
			}
		}
	case isList && parts && len(words(value)) < len(list):
		if len(list) > 1 {
			of.kinds = nil // a kind that goes from one of several to another takes the fields of that one
		}
		for i, item := range list {
			p.add(of, in, fmt.Sprintf("%s[%d]", path, i), name, item)
		}
	case topic == tried && of.acts:
	default:
		text, err := json.Marshal(sorted(of.unmet(name, value)))
		if err == nil && !slices.Contains([]string{"null", "{}", "[]", `""`, usual[name]}, string(text)) {
			p[path] = field{topic: topic, text: string(text)}
		}
	}
}

// addMeant adds annotations or labels by which an engine is told something, such as the kinds of which it makes rules, or
// when it deletes a policy. Those of policies.kyverno.io describe a policy.
func (p fields) addMeant(path string, pairs map[string]string) {
	for key, value := range pairs {
		domain, _, _ := strings.Cut(key, "/")
		for _, engine := range []string{kyvernoGroup, gatekeeperGroup} {
			if domain != "policies."+engine && (domain == engine || strings.HasSuffix(domain, "."+engine)) {
				p[path+"."+quoted(key)] = field{topic: other, text: value}
			}
		}
	}
}

// abbreviated is a text that is short enough for a list, and differs from those of others.
func abbreviated(text string) string {
	const most = 60
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%.4x)", strings.ToValidUTF8(text[:most], ""), sha256.Sum256([]byte(text)))
}

// unmet leaves those out of a list of kinds of which requests show the policy.
func (s shown) unmet(name string, value any) any {
	list, isList := value.([]any)
	if !isList || !slices.Contains([]string{"kinds", "resources", "apiGroups", "groups"}, name) {
		return value
	}
	return slices.DeleteFunc(slices.Clone(list), func(word any) bool {
		text, _ := word.(string)
		k, sub := kindOf(text)
		return sub == "" && s.kinds[k.Kind]
	})
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

// add adds an object: its labels, and what it holds if that is compared.
func (c contents) add(o *unstructured.Unstructured, whole bool) {
	is := tree{"labels": o.GetLabels()}
	if whole {
		maps.Copy(is, bare(o).Object)
		delete(is, "metadata")
	}
	text, _ := json.Marshal(is) // it was decoded from JSON
	name := nameOf(o)
	c[name] = append(c[name], string(text))
	slices.Sort(c[name])
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

// parts are those of the set, by their names, and the objects that decide about requests and that are left aside.
func (s *Set) parts(by Shown) (parts map[string]fields, aside contents) {
	parts, aside = map[string]fields{}, contents{}
	for _, o := range s.deciding {
		name := nameOf(o.Unstructured)
		if !s.takes(o) {
			aside.add(o.Unstructured, true)
			continue
		}
		all := fields{}
		all.add(by.actor(o), other, "spec", "spec", o.Object["spec"])
		all.addMeant("metadata.annotations", o.GetAnnotations())
		all.addMeant("metadata.labels", o.GetLabels())
		var order []string
		for _, rule := range rulesIn(o.Unstructured) {
			order = append(order, ofRule(name, rule))
			of := fields{}
			of.add(by.of(o.GetName(), rule["name"]), other, "", "", rule)
			parts[ofRule(name, rule)] = of
		}
		if apply, _, _ := unstructured.NestedString(o.Object, "spec", "applyRules"); apply == "One" { // the first one
			all["spec.rules"] = field{topic: other, text: strings.Join(order, ", ")}
		}
		if len(all) > 0 || !isTemplate(o.GroupVersionKind()) { // a template acts by its constraints
			parts[name] = all
		}
	}
	for _, o := range s.passed {
		if k := o.GroupVersionKind(); k.Version == "" || decides(k) || slices.Contains(s.ParamKinds(), k) {
			aside.add(o.Unstructured, true)
		}
	}
	return parts, aside
}

// actor is what is shown of the policy that an object is, or acts for: of a template, what is of all its constraints.
func (s Shown) actor(o object) shown {
	switch policy, bound, _ := unstructured.NestedString(o.Object, "spec", "policyName"); {
	case isTemplate(o.GroupVersionKind()):
		return s.all(func(p *Policy) bool { return p.kind() == defines(o.Unstructured) })
	case bound:
		return s.of(policy, nil)
	}
	return s.of(o.GetName(), nil)
}

// read are the parameters of the set's policies, the ConfigMaps that others may read, and the labels of namespaces.
// What stands in parameters of policies that requests show is left to these.
func (s *Set) read(by Shown) contents {
	out := contents{}
	for _, o := range s.params {
		whole := !by.all(func(p *Policy) bool {
			k, ok := p.paramKind()
			return ok && k.GroupKind() == o.GroupVersionKind().GroupKind()
		}).acts
		out.add(o, whole)
	}
	for _, o := range s.configMaps {
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

// Unasked says in what a set differs from a base where tare's requests do not show what that permits: in what decides
// which requests its policies are about, and what becomes of them, in what no request shows of either, and in policies
// that the base alone has.
func (s *Set) Unasked(base *Set, by Shown) (out []string) {
	by.base = base
	parts, aside := s.parts(by)
	were, wereAside := base.parts(by)
	differ := make([][]string, len(topics))
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(were)) {
		is, ok := parts[name]
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
	differ[reads] = append(differ[reads], s.read(by).differing(base.read(by))...)
	say := func(what string, names []string) {
		if len(names) > 0 {
			out = append(out, what+", and tare's requests do not show what that permits: "+strings.Join(names, ", "))
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
	say("policies of the baseline's are missing", missing)
	say("policies that change or make objects are new", added)
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
		if p[path] != from[path] && (!p[path].further || from[path] != field{}) {
			out[all[path].topic] = append(out[all[path].topic], path)
		}
	}
	return out
}
