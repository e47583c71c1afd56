package admission

import (
	"fmt"
	"slices"
	"strings"
)

// The verbs of operations.
const (
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbGet    = "get"
	verbList   = "list"
	verbDelete = "delete"
)

const (
	// dryRunSuffix ends the names of writing operations that change nothing.
	dryRunSuffix = "-dry-run"
	// startupName is the operation that creates a pod and waits until it is seen running.
	startupName = "pod-startup"
	// defaultOperation is the operation of a load that names none.
	defaultOperation = verbCreate + "-pod" + dryRunSuffix
)

// An operation is one verb on one kind of object, or the start of a pod.
type operation struct {
	name     string
	verb     string
	resource resource
	dryRun   bool
}

// A resource is a kind of objects that operations use.
type resource struct {
	noun   string // "pod"
	kind   string // "Pod"
	group  string // "" or "apps"
	plural string // "pods"
}

// resources returns the kinds, in their order.
func resources() []resource {
	return []resource{
		{"pod", "Pod", "", "pods"},
		{"deployment", "Deployment", "apps", "deployments"},
		{"configmap", "ConfigMap", "", "configmaps"},
	}
}

// version returns the resource's apiVersion.
func (r resource) version() string {
	if r.group == "" {
		return "v1"
	}
	return r.group + "/v1"
}

// path returns the path of the resource's objects in a namespace.
func (r resource) path(namespace string) string {
	if r.group == "" {
		return "/api/v1/namespaces/" + namespace + "/" + r.plural
	}
	return "/apis/" + r.group + "/v1/namespaces/" + namespace + "/" + r.plural
}

// writes reports whether a verb changes something, unless it is a dry run.
func writes(verb string) bool { return verb != verbGet && verb != verbList }

// startup reports whether o starts a pod and waits for it.
func (o operation) startup() bool { return o.name == startupName }

// operations returns all operations, in order.
func operations() (out []operation) {
	for _, r := range resources() {
		for _, verb := range []string{verbCreate, verbUpdate, verbPatch, verbGet, verbList, verbDelete} {
			o := operation{name: verb + "-" + r.noun, verb: verb, resource: r}
			out = append(out, o)
			if writes(verb) {
				o.name, o.dryRun = o.name+dryRunSuffix, true
				out = append(out, o)
			}
		}
	}
	return append(out, operation{name: startupName, verb: verbCreate, resource: resources()[0]})
}

// chosen returns the operations of these names; none: the default one.
func chosen(names []string) ([]operation, error) {
	if len(names) == 0 {
		names = []string{defaultOperation}
	}
	all := operations()
	var out []operation
	for _, name := range names {
		i := slices.IndexFunc(all, func(o operation) bool { return o.name == name })
		if i < 0 {
			return nil, fmt.Errorf("operations: there is no operation %q; there are %s", name,
				strings.Join(operationNames(), ", "))
		}
		if !slices.ContainsFunc(out, func(o operation) bool { return o.name == name }) {
			out = append(out, all[i])
		}
	}
	return out, nil
}

// operationNames lists the operations.
func operationNames() (out []string) {
	for _, o := range operations() {
		out = append(out, o.name)
	}
	return out
}
