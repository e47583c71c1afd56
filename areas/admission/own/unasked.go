package own

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// fields are those of a policy, a binding, a constraint or a rule that tare's requests do not try, by their paths in a
// file. Requests create objects of common kinds in one namespace, as one user; selectors, lists of namespaces,
// operations and subjects make no difference to them.
type fields map[string]string

// tried are the fields that requests try, or that only say something.
var tried = map[string]bool{
	"validations": true, "variables": true, "auditAnnotations": true, "mutations": true, "paramKind": true,
	"parameters": true, "location": true, "context": true, "mutate": true, "generate": true, "message": true,
	"messageExpression": true, "pattern": true, "anyPattern": true, "deny": true, "foreach": true, "cel": true,
	"podSecurity": true, "assert": true, "manifests": true, "rego": true, "libs": true, "crd": true, "rules": true,
	"target": true, "engine": true, "emitWarning": true, "reportProperties": true,
}

// untried are fields that are compared as a whole, in the words for what they say.
var untried = []struct {
	what   string
	fields []string
}{
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
	{"what else policies say of their requests", nil},
}

// usual is what fields mean that are not there, or empty.
var usual = map[string]string{
	"failurePolicy": `"Fail"`, "matchPolicy": `"Equivalent"`, "scope": `"*"`, "enforcementAction": `"deny"`,
	"background": "true", "admission": "true", "validationFailureAction": `"Audit"`,
}

// whatOf is the index in untried of what a field says.
func whatOf(path string) int {
	for i, u := range untried {
		if slices.Contains(u.fields, fieldOf(path)) {
			return i
		}
	}
	return len(untried) - 1
}

func fieldOf(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// add adds what stands at a path.
func (p fields) add(path string, value any) {
	field := fieldOf(path)
	list, isList := value.([]any)
	fields, isMap := value.(tree)
	whole := whatOf(path) < len(untried)-1 || isList && len(words(value)) == len(list)
	switch {
	case isMap && !whole:
		for name, in := range fields {
			if !tried[name] {
				p.add(strings.TrimPrefix(path+"."+name, "."), in)
			}
		}
	case isList && !whole:
		for i, in := range list {
			p.add(fmt.Sprintf("%s[%d]", path, i), in)
		}
	default:
		text, err := json.Marshal(sorted(untriedWords(field, value)))
		if err == nil && !slices.Contains([]string{"null", "{}", "[]", `""`, usual[field]}, string(text)) {
			p[path] = string(text)
		}
	}
}

// untriedWords leaves the kinds out of a list of them that requests create.
func untriedWords(field string, value any) any {
	list, isList := value.([]any)
	if !isList || !slices.Contains([]string{"kinds", "resources", "apiGroups", "groups"}, field) {
		return value
	}
	return slices.DeleteFunc(slices.Clone(list), func(word any) bool {
		text, _ := word.(string)
		k, sub := kindOf(text)
		return sub == "" && slices.ContainsFunc(candidates(), func(c candidate) bool {
			return k.Kind == c.kind || k.Kind == c.resource || k.Kind == c.group
		})
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

// parts are those of the set, by their names, and the objects that decide about requests and that are left aside.
func (s *Set) parts() (parts, aside map[string]fields) {
	parts, aside = map[string]fields{}, map[string]fields{}
	for _, o := range s.deciding {
		name := o.GetName()
		if o.GetNamespace() != "" {
			name = o.GetNamespace() + "/" + name
		}
		name = o.GetKind() + " " + name
		if !s.takes(o) {
			whole := bare(o.Unstructured).Object
			delete(whole, "metadata")
			text, _ := json.Marshal(whole) // it was decoded from JSON
			aside[name] = fields{"": string(text)}
			continue
		}
		all := fields{}
		all.add("spec", o.Object["spec"])
		if len(all) > 0 || !isTemplate(o.GroupVersionKind()) { // a template acts by its constraints
			parts[name] = all
		}
		for _, rule := range rulesIn(o.Unstructured) {
			of := fields{}
			of.add("", rule)
			parts[fmt.Sprintf("%s (rule %v)", name, rule["name"])] = of
		}
	}
	return parts, aside
}

// Unasked says in what a set differs from a base where tare's requests do not show what that permits: in what decides
// which requests its policies are about, and what becomes of them, and in policies that the base alone has.
func (s *Set) Unasked(base *Set) (out []string) {
	parts, aside := s.parts()
	were, wereAside := base.parts()
	differ := make([][]string, len(untried))
	var missing, left []string
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
	for name, was := range wereAside {
		if !maps.Equal(aside[name], was) {
			left = append(left, name)
		}
	}
	for name := range aside {
		if wereAside[name] == nil {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	say := func(what string, names []string) {
		if len(names) > 0 {
			out = append(out, what+", and tare's requests do not show what that permits: "+strings.Join(names, ", "))
		}
	}
	say("policies of the baseline's are missing", missing)
	for i, names := range differ {
		say(untried[i].what+" differs", names)
	}
	say("what tare leaves aside differs", left)
	return out
}

// differing are the paths of the fields that differ from others, by what they say, as untried has it.
func (p fields) differing(from fields) [][]string {
	out := make([][]string, len(untried))
	all := maps.Clone(from)
	maps.Copy(all, p)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if p[path] != from[path] {
			out[whatOf(path)] = append(out[whatOf(path)], path)
		}
	}
	return out
}
