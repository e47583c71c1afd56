package own

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
)

// mostCustom bounds the kinds that are defined for policies of Kyverno's.
const mostCustom = 50

// The words of which a kind is made that can be defined.
var (
	kindWord    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	versionWord = regexp.MustCompile(`^v[0-9]+((alpha|beta)[0-9]+)?$`)
	groupWord   = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)
)

// engineGroups are those whose kinds the engines themselves define.
var engineGroups = []string{"wgpolicyk8s.io", "openreports.io"}

// isCustom reports whether an API server has a kind only if a CustomResourceDefinition adds it, and no engine does that
// by itself.
func isCustom(k schema.GroupVersionKind) bool {
	return kindWord.MatchString(k.Kind) && versionWord.MatchString(k.Version) && groupWord.MatchString(k.Group) &&
		!builtin(k.GroupKind()) && !decides(k) && !slices.Contains(engineGroups, k.Group) &&
		!slices.Contains(testGroups, k.Group)
}

// takeCustom notes for each policy of Kyverno's the kinds that it is about, generates or changes and that an API server
// has by a definition only: Kyverno refuses a policy that generates a kind that there is not. others are the bundle's
// objects, by which a kind that a policy names alone has its group and version.
func (s *Set) takeCustom(others []*unstructured.Unstructured) {
	var known []schema.GroupVersionKind
	defined := mechanism.Defined(others)
	for k := range defined {
		known = append(known, k)
	}
	for _, o := range others {
		known = append(known, o.GroupVersionKind())
	}
	known = slices.DeleteFunc(known, func(k schema.GroupVersionKind) bool { return !isCustom(k) })
	slices.SortFunc(known, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	known = slices.Compact(known)
	n := map[schema.GroupKind]bool{}
	for i := range s.Policies {
		p := &s.Policies[i]
		if p.engine == nil || !isKyverno(p.engine.GroupVersionKind()) {
			continue
		}
		all := customOf(p.engine, known)
		for k, resource := range defined { // policies in CEL name resources
			if IsCEL(p.engine) && isCustom(k) && p.Sees(resource.Group, resource.Version, resource.Resource, "CREATE") {
				all = append(all, k)
			}
		}
		for _, k := range all {
			if gk := k.GroupKind(); n[gk] || len(n) < mostCustom {
				n[gk] = true
				p.custom = append(p.custom, k)
			}
		}
	}
}

// customOf are the kinds that rules of a policy name and that a definition gives.
func customOf(o *unstructured.Unstructured, known []schema.GroupVersionKind) (out []schema.GroupVersionKind) {
	add := func(k schema.GroupVersionKind) {
		if isCustom(k) {
			out = append(out, k)
			return
		}
		for _, is := range known {
			fits := func(word, is string) bool { return word == "" || word == "*" || word == is }
			if k.Kind == is.Kind && fits(k.Group, is.Group) && fits(k.Version, is.Version) {
				out = append(out, is)
				return
			}
		}
	}
	for _, resources := range resourcesIn(o) {
		for _, word := range words(resources["kinds"]) {
			k, _ := kindOf(word)
			add(k)
		}
	}
	for _, k := range madeBy(o) {
		add(k)
	}
	return out
}
