package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// A Need is what an experiment does on a user's cluster.
type Need struct {
	Operations []string                      // "create-pod-dry-run", …, "pod-startup"
	Mechanisms []string                      // "vap", …
	Manifests  []schema.GroupVersionResource // the resources in the directories of mechanism "manifests"
	Metrics    bool                          // whether /metrics is read, which a run can do without: see Right.Optional
}

const admissionGroup = "admissionregistration.k8s.io"

// created are the resources that a mechanism, or an engine for policies of the user's, has created, besides a namespace
// with labels. The kinds of Gatekeeper's constraints are named for each run.
var created = map[string][]schema.GroupResource{
	"none": nil, "psa": nil, "manifests": nil,
	"vap":              in(admissionGroup, "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
	"map":              in(admissionGroup, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
	"webhook":          in(admissionGroup, "validatingwebhookconfigurations"),
	"mutating-webhook": in(admissionGroup, "mutatingwebhookconfigurations"),
	"kyverno": append(in("kyverno.io", "clusterpolicies", "policies"),
		in("policies.kyverno.io", "namespacedmutatingpolicies", "namespacedvalidatingpolicies")...),
	"gatekeeper": slices.Concat(in("templates.gatekeeper.sh", "constrainttemplates"),
		in("constraints.gatekeeper.sh", "*"), in("mutations.gatekeeper.sh", "assign", "assignimage", "assignmetadata",
			"modifyset")),
}

func in(group string, resources ...string) (out []schema.GroupResource) {
	for _, r := range resources {
		out = append(out, schema.GroupResource{Group: group, Resource: r})
	}
	return out
}

// Mechanisms returns the names that Need knows.
func Mechanisms() []string { return slices.Sorted(maps.Keys(created)) }

// keep are the verbs for objects that are created, found again after a crash, and removed.
var keep = []string{"create", "get", "list", "delete"}

// Rules returns the least rights for measuring n on a user's cluster, in all namespaces: the names of a run's
// namespaces are unknown in advance, and RBAC knows no patterns.
func Rules(n Need) ([]rbacv1.PolicyRule, error) {
	s := scope{}
	s.add(namespaces.GroupResource(), keep...)
	s.add(accounts.GroupResource(), "get")
	s.add(pods.GroupResource(), "create") // proofs of what is denied and what is admitted
	for _, name := range n.Operations {
		o, err := parseOperation(name)
		if err != nil {
			return nil, err
		}
		s.add(o.resource, o.verbs...)
		if o.stock {
			s.add(o.resource, keep...)
		}
	}
	for _, m := range n.Mechanisms {
		resources, ok := created[m]
		if !ok {
			return nil, fmt.Errorf("mechanism %q cannot be measured on a user's cluster; these can: %s", m,
				strings.Join(Mechanisms(), ", "))
		}
		for _, r := range resources {
			s.add(r, keep...)
		}
	}
	for _, r := range n.Manifests {
		s.add(r.GroupResource(), keep...)
	}
	rules := s.rules()
	if n.Metrics {
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{metricsPath}})
	}
	return rules, nil
}

// CallerRules returns the rights that the load's user needs in its namespace.
func CallerRules(operations []string) ([]rbacv1.PolicyRule, error) {
	s := scope{}
	for _, name := range operations {
		o, err := parseOperation(name)
		if err != nil {
			return nil, err
		}
		s.add(o.resource, o.verbs...)
	}
	return s.rules(), nil
}

// operation is what an operation's name implies for rights.
type operation struct {
	resource schema.GroupResource
	verbs    []string
	stock    bool // the server keeps objects, created by it or for it
}

func parseOperation(name string) (operation, error) {
	if name == "pod-startup" {
		return operation{pods.GroupResource(), []string{"create", "list", "watch"}, true}, nil
	}
	short, dry := strings.CutSuffix(name, "-dry-run")
	verb, what, _ := strings.Cut(short, "-")
	resources := map[string]schema.GroupVersionResource{"pod": pods, "deployment": deploys, "configmap": configMaps}
	writes := []string{"create", "update", "patch", "delete"}
	r, ok := resources[what]
	if !ok || (!slices.Contains(writes, verb) && (dry || (verb != "get" && verb != "list"))) {
		return operation{}, fmt.Errorf("operation %q is not known: want create-pod-dry-run, patch-configmap, list-pod, "+
			"pod-startup, …", name)
	}
	return operation{r.GroupResource(), []string{verb}, verb != "create" || !dry}, nil
}

// scope collects verbs by resource.
type scope map[schema.GroupResource]map[string]bool

func (s scope) add(r schema.GroupResource, verbs ...string) {
	if s[r] == nil {
		s[r] = map[string]bool{}
	}
	for _, v := range verbs {
		s[r][v] = true
	}
}

// verbOrder is how people write them.
var verbOrder = []string{"create", "get", "list", "watch", "update", "patch", "delete"}

// rules merges resources of one group with equal verbs, in a fixed order.
func (s scope) rules() []rbacv1.PolicyRule {
	byVerbs := map[string]*rbacv1.PolicyRule{}
	for _, r := range slices.SortedFunc(maps.Keys(s),
		func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		var verbs []string
		for _, v := range verbOrder {
			if s[r][v] {
				verbs = append(verbs, v)
			}
		}
		key := r.Group + " " + strings.Join(verbs, " ")
		if byVerbs[key] == nil {
			byVerbs[key] = &rbacv1.PolicyRule{APIGroups: []string{r.Group}, Verbs: verbs}
		}
		byVerbs[key].Resources = append(byVerbs[key].Resources, r.Resource)
	}
	out := make([]rbacv1.PolicyRule, 0, len(byVerbs))
	for _, key := range slices.Sorted(maps.Keys(byVerbs)) {
		out = append(out, *byVerbs[key])
	}
	return out
}

// RoleName is the name of the ClusterRole that YAML prints.
const RoleName = "tare"

// notes precede the role.
const notes = `# What a person needs who runs tare against this cluster, and no more.
# It is a ClusterRole, bound for the whole cluster: each run makes namespaces of its own (tare-<run>-…), whose names nobody knows before, and RBAC has no
# patterns for names. Everything that a run creates carries the label tare.dev/run=<run>; nothing else is changed or removed.
# Every policy and webhook selects the run's own namespaces only. What every authenticated user may do by default is not listed: discovery, /version, and
# asking for one's own rights (ClusterRoles system:discovery, system:public-info-viewer, system:basic-user).
# Bind it: kubectl create clusterrolebinding tare --clusterrole=tare --user=NAME (or --serviceaccount=NAMESPACE:NAME); remove both when done.
`

// YAML returns a ClusterRole with the rules, and notes on binding it, for kubectl apply.
func YAML(rules []rbacv1.PolicyRule) ([]byte, error) {
	role := rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: RoleName},
		Rules:      rules,
	}
	text, err := yaml.Marshal(role)
	if err != nil {
		return nil, fmt.Errorf("write the role: %w", err)
	}
	head := []byte(notes)
	for _, r := range Rights(rules) {
		if lost, ok := r.Optional(); ok {
			head = fmt.Appendf(head, "# The right to %s may be left out; without it %s.\n", r, lost)
		}
	}
	return append(head, text...), nil
}
