package decision

import (
	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/areas/decision/replica"
	"tare/internal/kit"
	"tare/internal/unit"
)

// Spec is the `target:` section of a decision experiment: a decision point that tare starts itself, or the URL of one.
type Spec struct {
	// Adapter names the protocol that the decision point speaks.
	Adapter AdapterName `yaml:"adapter,omitempty" json:"adapter,omitempty" jsonschema_description:"Protocol of the decision point. Default: that of the embedded engine."`
	// Embedded describes the decision point that tare starts itself.
	Embedded *Embedded `yaml:"embedded,omitempty" json:"embedded,omitempty" jsonschema_description:"A decision point that tare starts itself, as a child process on loopback, with its policies."`
	// URL is the decision point's base; the adapter adds the protocol's paths.
	URL string `yaml:"url,omitempty" json:"url,omitempty" jsonschema_description:"Base URL of the decision point under test, such as https://pdp:6969. Instead of embedded."`
	// Path is the protocol's path below the URL, where it is not the usual one.
	Path string `yaml:"path,omitempty" json:"path,omitempty" jsonschema_description:"Path of the question below the URL, for authzen, xacml and k8s-sar. Default: the protocol's own."`

	Username string      `yaml:"username,omitempty" json:"username,omitempty" jsonschema_description:"User of basic authentication."`
	Password area.Secret `yaml:"password,omitempty" json:"password,omitzero" jsonschema_description:"Password of basic authentication: {env: NAME} or {file: path}."`
	Token    area.Secret `yaml:"token,omitempty" json:"token,omitzero" jsonschema_description:"Sent as Authorization: Bearer …: {env: NAME} or {file: path}."`
	// Headers are sent with every request, besides those of the protocol.
	Headers map[string]string `yaml:"headers,omitempty" json:"headers,omitempty" jsonschema_description:"Further request headers. They must hold no secret."`
	// SecretHeaders are headers whose values are secrets.
	SecretHeaders map[string]area.Secret `yaml:"secret_headers,omitempty" json:"secret_headers,omitempty" jsonschema_description:"Further request headers with secrets: {env: NAME} or {file: path}."`
	// TLS says whom to trust over https.
	TLS *kit.TLS `yaml:"tls,omitempty" json:"tls,omitempty" jsonschema_description:"For https: whom to trust, and who we are."`
	// ExposeSecrets allows secrets to be sent where others could read them.
	ExposeSecrets bool `yaml:"expose_secrets,omitempty" json:"expose_secrets,omitempty" jsonschema_description:"Send secrets to another host even over http://, or without verifying its certificate. Every report will say so."`

	// Process names what is measured of a decision point behind a URL.
	Process *Process `yaml:"process,omitempty" json:"process,omitempty" jsonschema_description:"Which processes on this host are the decision point behind the URL, for CPU, memory and garbage collections. Default on loopback: whoever listens at the URL's port."`
	// Metrics is the decision point's own endpoint of metrics.
	Metrics *Metrics `yaml:"metrics,omitempty" json:"metrics,omitempty" jsonschema_description:"The decision point's own metrics, read before and after."`

	Policies int            `yaml:"policies,omitempty" json:"policies,omitempty" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"How many policies the decision point holds. Default 100. Of one behind a URL this is ours to say only with load: true."`
	Position model.Position `yaml:"position,omitempty" json:"position,omitempty" jsonschema:"enum=first,enum=last,enum=absent" jsonschema_description:"Where among the policies the one stands that decides; absent: there is none. Default last."`
	Batch    int            `yaml:"batch,omitempty" json:"batch,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Questions in one request, where the protocol has batches. Default 1."`
	Load     bool           `yaml:"load,omitempty" json:"load,omitempty" jsonschema_description:"Put the policies into the decision point behind the URL before the run, and take them out again (opa, openfga)."`
	// Requests are questions about policies that are there already.
	Requests []Request `yaml:"requests,omitempty" json:"requests,omitempty" jsonschema:"minItems=1,maxItems=200" jsonschema_description:"Questions about policies that the decision point behind the URL holds already, each with the decision that is known to be right. At least one must be refused."`
	// RequestFiles are questions in files.
	RequestFiles string `yaml:"request_files,omitempty" json:"request_files,omitempty" tare:"path" jsonschema_description:"Folder with further requests: ALLOW/*.json are those that must be permitted, DENY/*.json those that must be denied. For authzen each is {principal, action, resource, context}, as Cedar's command line reads it, for opa an input document (also YAML), for openfga the body of a check; or, for openfga, a store (.fga.yaml), whose tests' checks are asked."`

	// Secrets are values in the bodies of Requests.
	Secrets map[string]area.Secret `yaml:"secrets,omitempty" json:"secrets,omitempty" jsonschema_description:"Secrets in the requests, by name: what {NAME} stands for in a body, context or property. Each is {env: NAME} or {file: path}. Not for ext-authz."`

	OPA     *protocol.OPA     `yaml:"opa,omitempty" json:"opa,omitempty" jsonschema_description:"Options of opa."`
	OpenFGA *protocol.OpenFGA `yaml:"openfga,omitempty" json:"openfga,omitempty" jsonschema_description:"Options of openfga."`
	PDPX    *protocol.PDPX    `yaml:"pdpx,omitempty" json:"pdpx,omitempty" jsonschema_description:"Options of pdpx: what its requests name."`
}

// AdapterName is the name of an adapter.
type AdapterName string

// Words implements area.Worded.
func (AdapterName) Words() []string { return protocol.Names() }

// Embedded chooses an engine, and plants faults into it.
type Embedded struct {
	Engine engine.Kind `yaml:"engine,omitempty" json:"engine,omitempty" jsonschema_description:"cedar (default): cedar-go behind AuthZEN. pdpx: a reference of ONAP's decision API. opa: Open Policy Agent. openfga: OpenFGA, with its store in memory. att and authzforce: the Java XACML engines."`
	// Bundle are the user's own policies.
	Bundle string `yaml:"bundle,omitempty" json:"bundle,omitempty" tare:"path" jsonschema_description:"Your own policies, unchanged, in place of tare's: for opa a folder or a bundle (.tar.gz), for cedar a folder with .cedar files, entities.json, a schema (.cedarschema) and links of templates (linked), or a .cedar file, for att and authzforce a file of XACML 3.0 (.xml), for openfga a store (.fga.yaml) or a folder with one. requests or request_files say what is asked of them, for openfga by default the checks of the store's own tests, and opa.path which rule answers."`
	// RegoV0 is for bundles that were written before OPA 1.0.
	RegoV0 bool `yaml:"rego_v0,omitempty" json:"rego_v0,omitempty" jsonschema_description:"true: the Rego of the bundle is that of OPA before 1.0, without if and contains."`
	// Network is for bundles that ask other servers.
	Network bool `yaml:"network,omitempty" json:"network,omitempty" jsonschema_description:"true: the Rego of a bundle may reach servers beyond loopback (http.send, net.lookup_ip_addr), with every question of the load. Else such a call fails. An opa from PATH is not held back."`
	// Data says how often the data of a bundle are there.
	Data     *replica.Data `yaml:"data,omitempty" json:"data,omitempty" jsonschema_description:"How often the data of a bundle for opa, cedar or openfga are there: as they are and copies of them under other names, which no request asks about, so that it can be seen what more data cost."`
	Enforcer *Enforcer     `yaml:"enforcer,omitempty" json:"enforcer,omitempty" jsonschema_description:"An enforcement point of tare's own between the callers and the decision point, as Envoy's external authorization is. Not for pdpx."`
	Planted  *Planted      `yaml:"planted,omitempty" json:"planted,omitempty" jsonschema_description:"Faults to plant, so that it can be seen that they are found: cedar and pdpx only."`
}

// Planted are faults of a decision point.
type Planted struct {
	Answer string `yaml:"answer,omitempty" json:"answer,omitempty" jsonschema:"enum=always-permit,enum=not-applicable-as-permit,enum=indeterminate" jsonschema_description:"A decision point that must be refused: it permits everything, says Permit where no policy applies, or says Indeterminate."`
	// AnswerAfter lets it pass the checks before the measurement.
	AnswerAfter unit.Duration `yaml:"answer_after,omitempty" json:"answer_after,omitempty" jsonschema_description:"How long after its start that answer begins, so that a soak has to find it: pdpx only."`
	Leak        unit.Size     `yaml:"leak_per_minute,omitempty" json:"leak_per_minute,omitempty" jsonschema_description:"Memory that is kept for ever, each minute: 1MiB."`
	NotReady    unit.Duration `yaml:"not_ready,omitempty" json:"not_ready,omitempty" jsonschema_description:"How long from its start it answers 409."`
	Cache       unit.Duration `yaml:"cache,omitempty" json:"cache,omitempty" jsonschema_description:"How long it gives a decision again, whatever its policies are by then: cedar only."`
	Gap         unit.Duration `yaml:"reload_gap,omitempty" json:"reload_gap,omitempty" jsonschema_description:"How long it has no policies whenever they are replaced."`
}

// Process names processes on this host in one of three ways.
type Process struct {
	PID    int    `yaml:"pid,omitempty" json:"pid,omitempty" jsonschema:"minimum=1" jsonschema_description:"The process and its children."`
	Port   int    `yaml:"port,omitempty" json:"port,omitempty" jsonschema:"minimum=1,maximum=65535" jsonschema_description:"The process that listens at this TCP port, and its children."`
	Cgroup string `yaml:"cgroup,omitempty" json:"cgroup,omitempty" jsonschema_description:"All processes of this control group, by its path below /sys/fs/cgroup."`
}

// Metrics is an endpoint in the Prometheus text format.
type Metrics struct {
	URL    string   `yaml:"url" json:"url" jsonschema:"required" jsonschema_description:"Where the metrics are: http://127.0.0.1:8181/metrics."`
	Series []string `yaml:"series,omitempty" json:"series,omitempty" jsonschema:"maxItems=50" jsonschema_description:"Series to keep besides those of the Go runtime and of the process: name or name{label=\"value\"}."`
}

// Request is one question and its right answer.
type Request struct {
	Name     string            `yaml:"name" json:"name" jsonschema:"required,pattern=^[A-Za-z0-9][A-Za-z0-9_-]*$,maxLength=64" jsonschema_description:"Its name in the mix, in budgets and reports."`
	Subject  Entity            `yaml:"subject,omitempty" json:"subject,omitzero" jsonschema_description:"Who asks."`
	Action   string            `yaml:"action,omitempty" json:"action,omitempty" jsonschema_description:"What it wants to do."`
	Resource Entity            `yaml:"resource,omitempty" json:"resource,omitzero" jsonschema_description:"With what."`
	Context  map[string]string `yaml:"context,omitempty" json:"context,omitempty" jsonschema_description:"Further attributes of the request."`
	Body     string            `yaml:"body,omitempty" json:"body,omitempty" jsonschema_description:"The request's whole body as JSON in the protocol's own form, instead of the fields above. It must hold no secret: see secrets."`
	Expect   string            `yaml:"expect" json:"expect" jsonschema:"required,enum=permit,enum=deny,enum=not-applicable,enum=list" jsonschema_description:"The right decision. list: the body asks OpenFGA for a list of objects or of users, and list is the right one."`
	// List is what Expect list expects.
	List   []string `yaml:"list,omitempty" json:"list,omitempty" jsonschema:"maxItems=1024" jsonschema_description:"With expect: list, all that belongs into it, in any order: doc:plan, user:ann, group:staff#member, user:*. Default: nothing does."`
	Policy string   `yaml:"policy,omitempty" json:"policy,omitempty" jsonschema_description:"Kind of the policy that decides it. Each kind needs one request that it refuses."`
}

// Entity is a subject or a resource.
type Entity struct {
	Type       string            `yaml:"type,omitempty" json:"type,omitempty" jsonschema_description:"Its type."`
	ID         string            `yaml:"id,omitempty" json:"id,omitempty" jsonschema_description:"Its name."`
	Properties map[string]string `yaml:"properties,omitempty" json:"properties,omitempty" jsonschema_description:"Its attributes."`
}

// Says implements area.Spec.
func (s *Spec) Says() area.Says {
	return area.Says{
		Loopback: kit.LoopbackURL(s.URL), LockKey: s.LockKey(), Conditions: s.Conditions(), WhyNot: s.WhyNot, Asks: s.Asks,
		Forecast: s.Forecast, Creates: s.Creates, Untried: s.untried,
	}
}
