package admission

import (
	"tare/internal/unit"
)

// Spec is the `target:` section of an admission experiment: a control plane that tare starts, or a cluster of the
// user's, and the policies.
type Spec struct {
	// Kubeconfig names an existing cluster.
	Kubeconfig string `yaml:"kubeconfig,omitempty" json:"kubeconfig,omitempty" tare:"path" jsonschema_description:"Path of the kubeconfig of a cluster of your own, instead of embedded. Everything that is created there is labelled, journaled, and removed again; tare doctor --rbac prints the rights that it takes."`
	// Context chooses a context of the kubeconfig.
	Context string `yaml:"context,omitempty" json:"context,omitempty" jsonschema_description:"Context of the kubeconfig. Default: its current context."`
	// ExposeSecrets allows sending the credentials where others could intercept them.
	ExposeSecrets bool `yaml:"expose_secrets,omitempty" json:"expose_secrets,omitempty" jsonschema_description:"Send the credentials of the kubeconfig to another host even without verifying its certificate (insecure-skip-tls-verify). Every report will say so."`
	// Embedded describes the control planes that tare starts.
	Embedded *Embedded `yaml:"embedded,omitempty" json:"embedded,omitempty" jsonschema_description:"A real control plane that tare starts itself, as child processes on loopback: etcd, kube-apiserver and, with simulated nodes, kube-scheduler and kube-controller-manager."`

	Mechanism  string `yaml:"mechanism,omitempty" json:"mechanism,omitempty" jsonschema:"enum=none,enum=psp,enum=psa,enum=vap,enum=map,enum=webhook,enum=mutating-webhook,enum=manifests" jsonschema_description:"How the policies are enforced: psp (PodSecurityPolicy of Kubernetes 1.24), psa (Pod Security Admission), vap and map (CEL: ValidatingAdmissionPolicy, MutatingAdmissionPolicy), webhook and mutating-webhook (tare's reference server), manifests (whatever the directory before holds). Default none."`
	Policies   *int   `yaml:"policies,omitempty" json:"policies,omitempty" jsonschema:"minimum=0,maximum=20000" jsonschema_description:"How many policies exist. Default 1; 0 is no policy at all."`
	Bound      *int   `yaml:"bound,omitempty" json:"bound,omitempty" jsonschema:"minimum=0,maximum=20000" jsonschema_description:"How many of them are bound to the namespace, or may be used by the caller: what the published test calls available. Default: all."`
	Useable    *int   `yaml:"useable,omitempty" json:"useable,omitempty" jsonschema:"minimum=0,maximum=20000" jsonschema_description:"How many of the bound ones are about the pod. Default: all; of psp the one that admits it."`
	Position   string `yaml:"position,omitempty" json:"position,omitempty" jsonschema:"enum=first,enum=last" jsonschema_description:"Of psp: where in the order of names the policy stands that admits the pod. Default last: the worst."`
	Irrelevant string `yaml:"irrelevant,omitempty" json:"irrelevant,omitempty" jsonschema:"enum=namespace-selector,enum=match-conditions,enum=resource-rule,enum=rejects,enum=unauthorized" jsonschema_description:"What makes the other policies irrelevant to the pod. Default namespace-selector; of psp rejects: no other policy admits it, or unauthorized: they would, if the caller might use them."`
	Bindings   string `yaml:"bindings,omitempty" json:"bindings,omitempty" jsonschema:"enum=one,enum=each" jsonschema_description:"Of psp: one rule of access for all bound policies, or one for each. Default one."`
	Params     *int   `yaml:"params,omitempty" json:"params,omitempty" jsonschema:"minimum=0,maximum=20000" jsonschema_description:"Of vap: how many bindings each bound policy has, each with a parameter (a ConfigMap) of its own. Each binding is an evaluation. Default 0: one binding without a parameter."`
	Level      string `yaml:"level,omitempty" json:"level,omitempty" jsonschema:"enum=privileged,enum=baseline,enum=restricted" jsonschema_description:"Level of psa. Default restricted."`

	VAP     *VAP     `yaml:"vap,omitempty" json:"vap,omitempty" jsonschema_description:"Options of vap."`
	Webhook *Webhook `yaml:"webhook,omitempty" json:"webhook,omitempty" jsonschema_description:"Options of webhook and mutating-webhook: tare's reference server, which runs beside the control plane."`
	Bundle  string   `yaml:"bundle,omitempty" json:"bundle,omitempty" tare:"path" jsonschema_description:"Folder, file or kustomization with policies of your own, unchanged, in place of policies that tare makes up: ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings and parameters, which act in the run's namespace only, Kyverno's ClusterPolicies, Policies, ValidatingPolicies, MutatingPolicies and GeneratingPolicies, and Gatekeeper's templates, constraints and mutations. For those tare runs the engine; with kubeconfig the cluster's own evaluates them, narrowed to the run's namespace."`
	BindAll bool     `yaml:"bind_all,omitempty" json:"bind_all,omitempty" jsonschema_description:"true: policies of the bundle that no binding names are bound, too, and deny what they object to. Default: they are not in force."`
	Network bool     `yaml:"network,omitempty" json:"network,omitempty" jsonschema_description:"true: policies of the bundle that have Kyverno ask other servers (a service, a registry for what an image holds), that have fields of which tare does not know that they ask nobody, or that may create what does (a webhook, a GeneratingPolicy's objects), are taken, too, and each request of the load may ask those; Kyverno may ask name servers. Default: they are left aside, by name."`
	// ParamKinds are consent to objects in a cluster of the user's.
	ParamKinds []string `yaml:"param_kinds,omitempty" json:"param_kinds,omitempty" jsonschema:"maxItems=50" jsonschema_description:"With a kubeconfig: kinds of parameters that the cluster has already, as KIND.GROUP, of which tare may make objects there: Limit.rules.example.com. Controllers of the cluster may act on them. Default: parameters are ConfigMaps, and of kinds that the bundle defines."`

	Measured string `yaml:"measured,omitempty" json:"measured,omitempty" tare:"path" jsonschema_description:"File with the pod that is created, which the policies of the bundle must admit. Default: one of tare's own with labels, limits, probes and a strict security context."`

	Requests string `yaml:"requests,omitempty" json:"requests,omitempty" tare:"path" jsonschema_description:"Folder or file with objects of your own that policies of the bundle should object to. Each is tried in the run's namespace, as a dry run, after what tare tries itself."`

	Kyverno    string `yaml:"kyverno,omitempty" json:"kyverno,omitempty" jsonschema_description:"Version of Kyverno, from 1.13.0 on, that evaluates the policies of the bundle that are Kyverno's. Built from its Go module, once, and run beside each control plane. As a level of a treatment without such policies: it runs without any. Default 1.19.1."`
	Gatekeeper string `yaml:"gatekeeper,omitempty" json:"gatekeeper,omitempty" jsonschema_description:"Version of Gatekeeper, from 3.23.0 on, that evaluates the constraints of the bundle. Built from its Go module, once, and run beside each control plane. As a level of a treatment without constraints: it runs without any. Default 3.23.1."`

	Audit unit.Duration `yaml:"audit,omitempty" json:"audit,omitempty" jsonschema_description:"How often the engines look again at all that exists, in whole seconds: Gatekeeper's audit (its chart says 60s), and Kyverno's background scans (1h), for which its reports controller runs beside it and it writes a report of each request. Default: never."`

	Manifests *Manifests `yaml:"manifests,omitempty" json:"manifests,omitempty" jsonschema_description:"Options of manifests: any engine as a black box."`

	Objects int  `yaml:"objects,omitempty" json:"objects,omitempty" jsonschema:"minimum=1,maximum=5000" jsonschema_description:"Stock of objects that update, patch, get and list act upon, and that delete uses up, per kind and trial. Default 200."`
	Pod     *Pod `yaml:"pod,omitempty" json:"pod,omitempty" jsonschema_description:"The pod that is created."`
}

// Embedded chooses the control planes.
type Embedded struct {
	Version   string   `yaml:"version,omitempty" json:"version,omitempty" jsonschema:"enum=1.36,enum=1.24" jsonschema_description:"Kubernetes release. Default 1.36; with psp 1.24, the last that has PodSecurityPolicy."`
	Nodes     int      `yaml:"nodes,omitempty" json:"nodes,omitempty" jsonschema:"minimum=0,maximum=5000" jsonschema_description:"Simulated nodes, on which pods are scheduled and said to run. No container is started. Default none, and no scheduler and controller-manager either."`
	Etcd      string   `yaml:"etcd,omitempty" json:"etcd,omitempty" jsonschema:"enum=tmpfs,enum=disk" jsonschema_description:"Where etcd keeps its data: tmpfs (default, without fsync), or disk with fsync."`
	Shared    bool     `yaml:"shared,omitempty" json:"shared,omitempty" jsonschema_description:"Treatments that differ in their policies only share one control plane: policies come before a trial and go after it. Default: each treatment has a control plane of its own, with its policies in place."`
	Binary    string   `yaml:"binary,omitempty" json:"binary,omitempty" tare:"path" jsonschema_description:"Path of a tare-plane binary that was built before. Default: $TARE_PLANE, the cache, or a build, once, of about 5 minutes."`
	BinaryPSP string   `yaml:"binary_psp,omitempty" json:"binary_psp,omitempty" tare:"path" jsonschema_description:"The same for the one of Kubernetes 1.24. Default: $TARE_PLANE_PSP, the cache, or a build."`
	Flags     []string `yaml:"flags,omitempty" json:"flags,omitempty" jsonschema:"maxItems=50" jsonschema_description:"Further flags of kube-apiserver, such as --max-requests-inflight=800."`
}

// VAP are the options of ValidatingAdmissionPolicies.
type VAP struct {
	FailurePolicy string `yaml:"failure_policy,omitempty" json:"failure_policy,omitempty" jsonschema:"enum=Fail,enum=Ignore" jsonschema_description:"What the API server does with a request on which a policy's expression ends in an error, or whose parameter is missing: Fail rejects it, Ignore admits it. Default Fail."`
	Match         string `yaml:"match,omitempty" json:"match,omitempty" jsonschema_description:"A CEL expression for matchConditions of the policies that look at the pod: they are evaluated only where it is true. Default: none."`
	Param         bool   `yaml:"param,omitempty" json:"param,omitempty" jsonschema_description:"The policies read a parameter, a ConfigMap of the run's namespace, which guard's condition partition deletes for a while. Only on a control plane that tare starts for the treatment alone. Default false."`
}

// Webhook are the options of the reference webhook server.
type Webhook struct {
	Latency unit.Duration `yaml:"latency,omitempty" json:"latency,omitempty" jsonschema_description:"How long the webhook takes to answer, in the median. Default 0. For guard it may exceed the time-out: policies are verified without it."`
	Listen  string        `yaml:"listen,omitempty" json:"listen,omitempty" jsonschema_description:"Address at which the webhook server listens. Default 127.0.0.1:0; of your own cluster an address that its API server reaches."`
	// Spread makes each answer's latency its own.
	Spread        float64       `yaml:"spread,omitempty" json:"spread,omitempty" jsonschema:"minimum=0,maximum=3" jsonschema_description:"Standard deviation of the logarithm of the latency: each answer has a lognormal latency of its own, whose median is latency. Default 0: all take latency."`
	Workers       int           `yaml:"workers,omitempty" json:"workers,omitempty" jsonschema:"minimum=0,maximum=10000" jsonschema_description:"How many requests the webhook works on at the same time, each for latency; others wait. It can answer workers/latency a second. Default: all."`
	FailurePolicy string        `yaml:"failure_policy,omitempty" json:"failure_policy,omitempty" jsonschema:"enum=Fail,enum=Ignore" jsonschema_description:"What the API server does with a request whose webhook does not answer in time: Fail rejects it, Ignore admits it. Default Fail."`
	Timeout       unit.Duration `yaml:"timeout,omitempty" json:"timeout,omitempty" jsonschema_description:"timeoutSeconds of the webhooks: whole seconds from 1s to 30s. Default 5s."`
	Match         string        `yaml:"match,omitempty" json:"match,omitempty" jsonschema_description:"A CEL expression for matchConditions of the webhooks that look at the pod: they are asked only where it is true. Default: none."`
	URL           string        `yaml:"url,omitempty" json:"url,omitempty" jsonschema_description:"https:// URL by which the cluster's API server reaches the webhook server, where that is another than where it listens."`
}

// Manifests are the files that install and configure a third-party engine.
type Manifests struct {
	Before string   `yaml:"before" json:"before" tare:"path" jsonschema:"required" jsonschema_description:"Directory of YAML manifests that are created, in the order of their files, to put the policies in force. $(TARE_NAMESPACE) is the run's namespace; a document with $(TARE_POLICY) is created once for each of policies."`
	After  string   `yaml:"after,omitempty" json:"after,omitempty" tare:"path" jsonschema_description:"Directory of YAML manifests that are created after the policies have gone, such as a clean-up job of the engine."`
	Good   string   `yaml:"good,omitempty" json:"good,omitempty" tare:"path" jsonschema_description:"File with a pod that must be admitted. Default: tare's own."`
	Says   []string `yaml:"says,omitempty" json:"says,omitempty" jsonschema:"maxItems=100" jsonschema_description:"What the denial of the bad pod must say, all of it: proof that it was these policies that denied it. A text with $(TARE_POLICY) must be there for each policy."`
	// ClusterWide agrees that the manifests judge requests beyond the run's namespaces.
	ClusterWide bool   `yaml:"cluster_wide,omitempty" json:"cluster_wide,omitempty" jsonschema_description:"true: bindings and webhooks of the manifests may judge requests in all namespaces of a cluster that tare did not start, other users' too. Default: such manifests are refused there."`
	Bad         string `yaml:"bad" json:"bad" tare:"path" jsonschema:"required" jsonschema_description:"File with a pod that the policies must deny. It is the proof that they are in force."`
}

// Pod is the pod that is created.
type Pod struct {
	Image     string `yaml:"image,omitempty" json:"image,omitempty" jsonschema_description:"Image of its container. Default registry.k8s.io/pause:3.10."`
	Scheduler string `yaml:"scheduler,omitempty" json:"scheduler,omitempty" jsonschema_description:"Scheduler of pods that pod-startup does not create. Default: one that does not exist, so that nothing runs."`
}
