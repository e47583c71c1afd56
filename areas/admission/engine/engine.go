// Package engine builds policy engines of others from their published modules, runs them beside a control plane of
// tare's own, and reads what they say.
package engine

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/internal/build"
)

// A Kind is an engine that tare knows.
type Kind struct {
	Name    string // "kyverno": of its factor, its child process, and the subject of its probe
	Title   string // "Kyverno"
	Default string // the version that runs where the file names none
	// Counts: it counts the objections of each policy.
	Counts bool
	// Unproved says which of its policies cannot be proved.
	Unproved string

	// Deployments selects, in a cluster, the Deployments that answer its webhooks, as its chart labels them; Image is the
	// last part of their image's name, and Webhooks the configuration by which they are asked.
	Deployments, Image, Webhooks string

	module, program string // "./cmd/kyverno"
	definitions     string // folder of its CustomResourceDefinitions in the module
	sums            map[string]string
	release         *regexp.Regexp
	since           string
	minutes         int // that a build takes on two idle cores
	// edits are those without which the program in a module's folder would listen on all addresses, answer other users, or
	// ask name servers.
	edits func(module string) ([]build.Edit, error)

	// Auditor and Background are programs that its chart runs beside it. The first looks again at what exists, nil: it
	// does so itself. The second does after a request what policies do to objects other than the request's, nil: nothing.
	Auditor, Background *Kind
}

const (
	gatekeeperModule = "github.com/open-policy-agent/gatekeeper/v3"
	kyvernoModule    = "github.com/kyverno/kyverno"
	kyvernoDefault   = "1.19.1"
)

var (
	kyvernoReleases = regexp.MustCompile(`^1\.(1[3-9]|[2-9]\d)\.\d{1,3}(-[a-z]+\.\d{1,3})?$`)
	// kyvernoSums: Go's checksum database vouches for versions that have no sum here.
	kyvernoSums = map[string]string{
		"1.13.6": "h1:hsyfL8Ty1zQRlUQsY9KV8xxA188sfUyQtsFBqlyLq/g=",
		"1.18.2": "h1:w/p1ysSEzOuMO4DaYmpiJ5YioL4OCkgmFFC5cJqiJ68=",
		"1.19.1": "h1:/MkgFii3/VlQfKR1JpC9tVwNNVNQTt2S4U6qCsafsTU=",
	}
	// kyvernoReports scans what exists and turns what Kyverno says of requests into reports.
	kyvernoReports = kyvernoController("reports")
	// kyvernoBackground generates objects, and changes those that exist.
	kyvernoBackground = kyvernoController("background")
)

// kyvernoController is a controller that runs beside Kyverno: "reports".
func kyvernoController(name string) *Kind {
	return &Kind{
		Name: "kyverno-" + name, Title: "Kyverno's " + name + " controller", Default: kyvernoDefault, module: kyvernoModule,
		program: "./cmd/" + name + "-controller", sums: kyvernoSums, release: kyvernoReleases, since: "1.13.0", minutes: 3,
		edits: kyvernoEdits,
	}
}

// The engines.
var (
	Kyverno = &Kind{
		Name: "kyverno", Title: "Kyverno", Default: kyvernoDefault, Counts: true,
		Unproved:    "Kyverno does not evaluate policies that only audit if another denies the request",
		Deployments: "app.kubernetes.io/component=admission-controller", Image: "kyverno",
		Webhooks: "kyverno-resource-validating-webhook-cfg",
		module:   kyvernoModule, program: "./cmd/kyverno", definitions: "config/crds", sums: kyvernoSums,
		release: kyvernoReleases, since: "1.13.0", minutes: 8,
		edits: kyvernoEdits, Auditor: kyvernoReports, Background: kyvernoBackground,
	}
	Gatekeeper = &Kind{
		Name: "gatekeeper", Title: "Gatekeeper", Default: "3.23.1",
		Unproved:    "of Gatekeeper only constraints that deny or are in CEL, and mutations, can be proved",
		Deployments: "gatekeeper.sh/system=yes,control-plane=controller-manager", Image: "gatekeeper",
		Webhooks: "gatekeeper-validating-webhook-configuration",
		module:   gatekeeperModule, edits: gatekeeperEdits, program: ".", definitions: "charts/gatekeeper/crds",
		sums:    map[string]string{"3.23.1": "h1:njHTm0SJ6ZEhhEgmQTpJKTGQbc99fSs4hGiEp1OIKck="},
		release: regexp.MustCompile(`^3\.(2[3-9]|[3-9]\d)\.\d{1,3}(-[a-z]+\.\d{1,3})?$`), since: "3.23.0", minutes: 8,
	}
)

// Kinds are all engines.
func Kinds() []*Kind { return []*Kind{Kyverno, Gatekeeper} }

// Programs are the engines, and what may run beside them.
func Programs() []*Kind { return append(Kinds(), kyvernoReports, kyvernoBackground) }

// Of returns the program with this name, or nil.
func Of(name string) *Kind {
	for _, k := range Programs() {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// CheckVersion reports why a version cannot be run.
func (k *Kind) CheckVersion(v string) error {
	if !k.release.MatchString(v) {
		return fmt.Errorf("%q is no version of %s from %s on, such as %s", v, k.Title, k.since, k.Default)
	}
	return nil
}

// Before are the objects that the engine reads when it starts: its namespace, and its settings as its chart has them.
func (k *Kind) Before() []*unstructured.Unstructured {
	if k == Gatekeeper {
		return gatekeeperSettings()
	}
	return kyvernoSettings()
}

// objectsIn returns what makes objects in a namespace, and the namespace itself.
func objectsIn(namespace string) func(kind, name string, rest map[string]any) *unstructured.Unstructured {
	return func(kind, name string, rest map[string]any) *unstructured.Unstructured {
		rest["apiVersion"], rest["kind"] = "v1", kind
		o := &unstructured.Unstructured{Object: rest}
		o.SetName(name)
		if kind != "Namespace" {
			o.SetNamespace(namespace)
		}
		return o
	}
}

// After are the objects by which the API server finds the engine that runs, if that does not write them itself. ca is
// the authority of its certificate.
func (k *Kind) After(r Ready, ca []byte) []*unstructured.Unstructured {
	if k == Gatekeeper {
		return gatekeeperWebhooks(r, ca)
	}
	return nil
}

// Broken is an object that the engine refuses once it checks policies.
func (k *Kind) Broken() *unstructured.Unstructured {
	if k == Gatekeeper {
		return brokenTemplate()
	}
	return brokenPolicy()
}
