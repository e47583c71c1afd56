package own

import (
	"fmt"
	"maps"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tare/areas/admission/mechanism"
)

// narrow has a binding act on objects of one namespace only, whatever it selected before. A term that selects other
// namespaces by their names is replaced: the run's namespace stands for them.
func narrow(m *admission.MatchResources, namespace string) *admission.MatchResources {
	if m == nil {
		m = &admission.MatchResources{}
	}
	m = m.DeepCopy()
	m.NamespaceSelector = withoutNames(m.NamespaceSelector)
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &meta.LabelSelector{}
	}
	m.NamespaceSelector.MatchExpressions = append(m.NamespaceSelector.MatchExpressions, meta.LabelSelectorRequirement{
		Key: mechanism.NameLabel, Operator: meta.LabelSelectorOpIn, Values: []string{namespace},
	})
	// Selectors of namespaces do not keep a policy from objects that are in none.
	namespaced := admission.NamespacedScope
	if len(m.ResourceRules) == 0 {
		every := []string{"*"}
		m.ResourceRules = []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
			Operations: []admission.OperationType{admission.OperationAll},
			Rule:       admission.Rule{APIGroups: every, APIVersions: every, Resources: []string{"*/*"}},
		}}}
	}
	for i := range m.ResourceRules {
		m.ResourceRules[i].Scope = &namespaced
	}
	return m
}

// withoutNames returns a selector without the terms that select namespaces by their names. Those that exclude names
// stay: the run's namespace has none of them.
func withoutNames(s *meta.LabelSelector) *meta.LabelSelector {
	if s == nil {
		return nil
	}
	out := s.DeepCopy()
	delete(out.MatchLabels, mechanism.NameLabel)
	out.MatchExpressions = slices.DeleteFunc(out.MatchExpressions, func(r meta.LabelSelectorRequirement) bool {
		return r.Key == mechanism.NameLabel && r.Operator == meta.LabelSelectorOpIn
	})
	return out
}

// labels are those that the run's namespace gets so that selectors find it. They grow with each selector that agrees
// with what is there.
type labels struct {
	has    map[string]string
	denied map[string][]string // values that a label must not have; nil: it must not be there
}

// satisfy adds what a selector asks of a namespace, or reports why that contradicts what others ask for.
func (l *labels) satisfy(s *meta.LabelSelector) error {
	if s == nil {
		return nil
	}
	s = withoutNames(s)
	has, denied := maps.Clone(l.has), maps.Clone(l.denied)
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		if err := set(has, denied, key, []string{s.MatchLabels[key]}); err != nil {
			return err
		}
	}
	for _, r := range s.MatchExpressions {
		if err := require(has, denied, r); err != nil {
			return err
		}
	}
	l.has, l.denied = has, denied
	return nil
}

func require(has map[string]string, denied map[string][]string, r meta.LabelSelectorRequirement) error {
	is, there := has[r.Key]
	switch r.Operator {
	case meta.LabelSelectorOpIn:
		return set(has, denied, r.Key, r.Values)
	case meta.LabelSelectorOpExists:
		if there {
			return nil
		}
		return set(has, denied, r.Key, []string{"true", "enabled", "yes"})
	case meta.LabelSelectorOpNotIn:
		if there && slices.Contains(r.Values, is) {
			return fmt.Errorf("the label %s of the namespace is %s for another", r.Key, is)
		}
		if was, excluded := denied[r.Key]; !excluded || was != nil {
			denied[r.Key] = append(slices.Clone(was), r.Values...)
		}
	case meta.LabelSelectorOpDoesNotExist:
		if there {
			return fmt.Errorf("the namespace has the label %s for another", r.Key)
		}
		denied[r.Key] = nil
	}
	return nil
}

// set gives a label the first of the values that it may have.
func set(has map[string]string, denied map[string][]string, key string, values []string) error {
	if is, there := has[key]; there {
		if slices.Contains(values, is) {
			return nil
		}
		return fmt.Errorf("the label %s of the namespace is %q for another", key, is)
	}
	not, excluded := denied[key]
	for _, v := range values {
		if !excluded || not != nil && !slices.Contains(not, v) {
			has[key] = v
			return nil
		}
	}
	return fmt.Errorf("another asks for a namespace without the label %s, or without that value", key)
}
