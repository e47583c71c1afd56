package analyze

import (
	"slices"
	"strings"
)

// A kind of requests, as a server tells them apart: "POST", "pods", "resource".
type kind struct{ verb, resource, scope string }

// String names requests as published tables do: "POST pods". A scope wider than a single object is told.
func (k kind) String() string {
	s := k.verb + " " + k.resource
	if k.verb == "LIST" || (k.scope != "" && k.scope != scopeResource) {
		s += " (" + k.scope + ")"
	}
	return strings.TrimSuffix(s, " ()")
}

// The scopes of requests: a single object, a namespace, everything.
const (
	scopeResource  = "resource"
	scopeNamespace = "namespace"
)

// An action is the one request that an operation on a control plane consists of.
type action struct {
	kind
	dryRun  bool
	startup bool // the operation goes on after its request was answered
	// admission is the server's word for what is to be admitted, "" for reads.
	admission string
	// storage is the request to the store that such a request needs.
	storage string
}

// dryRunSuffix ends the names of operations that change nothing.
const dryRunSuffix = "-dry-run"

// podStartup is the operation that creates a pod and waits until it is seen running.
const podStartup = "pod-startup"

// actionOf is what an operation asks of a server, by its name: "create-pod", "list-configmap", "pod-startup". ok is
// false for names of other areas.
func actionOf(operation string) (a action, ok bool) {
	if operation == podStartup {
		a, ok = actionOf("create-pod")
		a.startup = true
		return a, ok
	}
	name, dryRun := strings.CutSuffix(operation, dryRunSuffix)
	verb, object, _ := strings.Cut(name, "-")
	a.dryRun = dryRun
	a.scope = scopeResource
	switch object {
	case "pod", "deployment", "configmap":
		a.resource = object + "s"
	default:
		return a, false
	}
	switch verb {
	case "create":
		a.verb, a.admission, a.storage = "POST", "CREATE", "create"
	case "update":
		a.verb, a.admission, a.storage = "PUT", "UPDATE", "update"
	case "patch":
		a.verb, a.admission, a.storage = "PATCH", "UPDATE", "update"
	case "delete":
		a.verb, a.admission, a.storage = "DELETE", "DELETE", "delete"
	case "get":
		a.verb, a.storage = "GET", "get"
	case "list":
		a.verb, a.scope, a.storage = "LIST", scopeNamespace, "list"
	default:
		return a, false
	}
	if dryRun {
		a.storage = "get" // whether the object is there is looked up, and nothing is written
	}
	return a, true
}

// actions are the requests that a run measures, by operation, in the order of the record.
func (a *analysis) actions() (names []string, all map[string]action) {
	all = map[string]action{}
	for _, t := range a.trials() {
		for _, name := range t.Operations {
			x, ok := actionOf(name)
			if _, seen := all[name]; ok && !seen {
				all[name] = x
				names = append(names, name)
			}
		}
	}
	return names, all
}

// mutating reports whether requests of this kind change something; the rest read.
func (k kind) mutating() bool {
	return slices.Contains([]string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}, k.verb)
}
