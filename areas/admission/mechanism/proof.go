package mechanism

import (
	"fmt"
	"strconv"
)

// Want is the expected decision on a pod.
type Want string

// The decisions.
const (
	Admitted Want = "admitted"
	Denied   Want = "denied"
)

// Probe is a pod for a dry run, and the expected answer, which Judge checks.
type Probe struct {
	Name string // of the pod
	Why  string // what the probe proves, for errors: "c-relevant-00001 denies"
	Pod  []byte // JSON
	Want Want
	// Path and Kind are set if Pod holds an object of another kind: the path of its creation, from the API server's root,
	// and that kind.
	Path, Kind string

	// For denied pods: parts that the message must all contain, and names of which it must quote one.
	Says []string
	By   []string
	// ByWords are parts of which the message must contain one.
	ByWords []string
	// For admitted pods: annotations that must have these values, and annotations that must be absent.
	Annotations map[string]string
	Absent      []string
	// Mark, if not nil, judges the object that is answered if it is admitted. Unmarked: the policies must not be in force.
	Mark     Mark
	Unmarked bool
}

// A Mark is what policies make of an object.
type Mark interface {
	// There returns an error unless the object is as the policies make it, and Absent unless it is as nobody changed it.
	There(body []byte) error
	Absent(body []byte) error
}

// Proof proves that a population is in force, and nothing else is.
type Proof struct {
	// pods that the mechanism must deny or, if it denies none, must admit, which proves that nothing else denies them
	Bad  []Probe
	Good Probe // the measured pod: it must be admitted, with the mechanism's mutations
	// Count, if not nil, counts evaluations.
	Count *Count
	// Object names the policies each of which must object to one of Bad or of Counted at least, by the API server's
	// counts.
	Object []string
	// Counted are asked for these counts alone: whoever denies them.
	Counted []Probe
}

// Count says by how much one dry run of Probe, with no other requests, must increase the counters of evaluations.
type Count struct {
	Probe Probe
	// Policies: apiserver_validating_admission_policy_check_total increases by one, or by one for each of Bindings, for
	// each of these names, and for no other that starts with Prefix. (It counts denials and errors, not admissions: so the
	// probe is one that all relevant policies deny.)
	Policies []string
	Bindings int
	Prefix   string
	// Paths: the reference webhook's count increases by one for each of these paths, and for no other.
	Paths []string
}

// Prove returns the proof of the population p of kind k in scope s. The probes are sent one after another. Of thousands
// of policies it probes samples (first, middle, last) individually, and all together by Count. For manifests see
// FileProof.
func Prove(k Kind, p Population, s Scope) Proof {
	policies := Policies(p, s)
	proof := Proof{Good: good(s)}
	switch k {
	case VAP, Webhook:
		proof.Bad, proof.Count = proveDenials(k, s, policies)
		proof.Count.Bindings = max(1, p.Params)
	case MutatingWebhook:
		proof.Bad, proof.Count = proveDenials(k, s, policies)
		mutations(&proof.Good, policies, once)
	case MAP:
		mutations(&proof.Good, policies, number)
		proof.Bad = []Probe{admitted(s, "bad", "a policy that mutates denies nothing", Pod{Privileged: true})}
		mutations(&proof.Bad[0], policies, number)
	case PSP:
		proof.Bad = []Probe{denied(s, "bad", "no policy allows a privileged container", Pod{Privileged: true},
			"PodSecurityPolicy: unable to admit pod")}
		proof.Good.Annotations = map[string]string{"kubernetes.io/psp": withRole(policies, Relevant)[0].Name}
	case PSA:
		proof.Bad = []Probe{proveLevel(p.Level, s)}
	case None, Manifests, Own:
		proof.Bad = []Probe{admitted(s, "bad", "nothing else denies it", Pod{Privileged: true})}
	}
	return proof
}

func good(s Scope) Probe { return admitted(s, "good", "the pod that is measured is admitted", Pod{}) }

func admitted(s Scope, name, why string, pod Pod) Probe {
	pod.Name, pod.Namespace = "tare-probe-"+name, s.Namespace
	return Probe{Name: pod.Name, Why: why, Pod: pod.JSON(), Want: Admitted}
}

func denied(s Scope, name, why string, pod Pod, says ...string) Probe {
	p := admitted(s, name, why, pod)
	p.Want, p.Says = Denied, says
	return p
}

func proveLevel(level string, s Scope) Probe {
	if level == Privileged {
		return admitted(s, "bad", "the privileged level denies nothing", Pod{Privileged: true})
	}
	return denied(s, "bad", "the level denies a privileged container", Pod{Privileged: true},
		fmt.Sprintf("violates PodSecurity %q", level+":latest"), "privileged")
}

// mutations requires the marks of all relevant policies and of no other: the sum of their values; nothing if there is
// none.
func mutations(p *Probe, policies []Policy, value func(Policy) int) {
	relevant := withRole(policies, Relevant)
	if len(relevant) == 0 {
		p.Absent = []string{MutatedKey}
		return
	}
	sum := 0
	for _, one := range relevant {
		sum += value(one)
	}
	p.Annotations = map[string]string{MutatedKey: strconv.Itoa(sum)}
}

func number(one Policy) int { return one.Number }

func once(Policy) int { return 1 }

// proveDenials requires each sampled relevant policy to deny pods that request it, and no other sampled policy to do
// so.
func proveDenials(k Kind, s Scope, policies []Policy) ([]Probe, *Count) {
	relevant := withRole(policies, Relevant)
	called, says, path := WebhookName, "admission webhook", ValidatePath
	if k == MutatingWebhook {
		path = MutatePath
	}
	if k == VAP {
		called, says = policyName, "ValidatingAdmissionPolicy"
	}
	var probes []Probe
	all := denied(s, "bad", "all relevant policies deny it", Pod{Labels: map[string]string{DenyLabel: DenyAll}}, says)
	if len(relevant) == 0 {
		all = admitted(s, "bad", "no policy is relevant", Pod{Labels: map[string]string{DenyLabel: DenyAll}})
	}
	count := &Count{Probe: good(s)}
	for _, one := range relevant {
		all.By = append(all.By, called(one))
		count.Paths = append(count.Paths, path+one.Short)
	}
	probes = append(probes, all)
	if k == VAP {
		count = &Count{Probe: all, Policies: all.By, Prefix: s.Namespace + "."}
		probes = append(probes, privileged(s, all))
	}
	for _, one := range sample(relevant) {
		p := denied(s, "bad-"+one.Short, one.Short+" denies it", Pod{Labels: map[string]string{DenyLabel: one.Short}}, says)
		p.By = []string{called(one)}
		probes = append(probes, p)
	}
	for _, other := range []Role{Irrelevant, Unbound} {
		for _, one := range sample(withRole(policies, other)) {
			probes = append(probes, admitted(s, "spared-"+one.Short, one.Short+" is not evaluated",
				Pod{Labels: map[string]string{DenyLabel: one.Short}}))
		}
	}
	return probes, count
}

// privileged is like all, for the other half of the expression.
func privileged(s Scope, all Probe) Probe {
	p := admitted(s, "bad-privileged", "the expression sees the pod's containers", Pod{Privileged: true})
	p.Want, p.Says, p.By = all.Want, all.Says, all.By
	return p
}

func policyName(one Policy) string { return one.Name }
