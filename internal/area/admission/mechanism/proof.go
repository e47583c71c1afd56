package mechanism

import (
	"fmt"
	"strconv"
)

// Want is what must become of a pod.
type Want string

// What can become of a pod.
const (
	Admitted Want = "admitted"
	Denied   Want = "denied"
)

// Probe is a pod that is sent as a dry run, and what the answer must be: Judge says whether it is.
type Probe struct {
	Name string // of the pod
	Why  string // what the probe shows, for errors: "c-relevant-00001 denies"
	Pod  []byte // JSON
	Want Want

	// For denied pods: parts that the message must have, all of them; and the names of which it must quote one.
	Says []string
	By   []string
	// For admitted pods: annotations that must be there with these values, and that must not be there.
	Annotations map[string]string
	Absent      []string
}

// Proof shows that a population is in force, and nothing else is.
type Proof struct {
	Bad  []Probe // pods that the mechanism must deny; if it denies none, that it must admit, so that it is known that nothing else denies them
	Good Probe   // the pod that is measured: must be admitted, and as the mechanism leaves it
	// Count, if it is not nil, counts what is evaluated.
	Count *Count
}

// Count says what one dry run of Probe, with nothing else going on, must add to the counters of who evaluates policies.
type Count struct {
	Probe Probe
	// Policies: apiserver_validating_admission_policy_check_total grows by one for each of these names, and for no other that
	// starts with Prefix. (It counts denials and errors, not admissions: so the probe is one that all relevant ones deny.)
	Policies []string
	Prefix   string
	// Paths: the reference webhook's count grows by one for each of these paths, and for no other.
	Paths []string
}

// Prove says how the population p of kind k in scope s is proved. The probes are sent one after another. Thousands of policies are proved by samples (first,
// middle, last) where they are told apart, and all at once by Count. For manifests see FileProof.
func Prove(k Kind, p Population, s Scope) Proof {
	policies := Policies(p, s)
	proof := Proof{Good: good(s)}
	switch k {
	case VAP, Webhook:
		proof.Bad, proof.Count = proveDenials(k, s, policies)
	case MutatingWebhook:
		proof.Bad, proof.Count = proveDenials(k, s, policies)
		mutations(&proof.Good, policies, once)
	case MAP:
		mutations(&proof.Good, policies, number)
		proof.Bad = []Probe{admitted(s, "bad", "a policy that mutates denies nothing", Pod{Privileged: true})}
		mutations(&proof.Bad[0], policies, number)
	case PSP:
		proof.Bad = []Probe{denied(s, "bad", "no policy allows a privileged container", Pod{Privileged: true}, "PodSecurityPolicy: unable to admit pod")}
		proof.Good.Annotations = map[string]string{"kubernetes.io/psp": with(policies, Relevant)[0].Name}
	case PSA:
		proof.Bad = []Probe{proveLevel(p.Level, s)}
	case None, Manifests:
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
	return denied(s, "bad", "the level denies a privileged container", Pod{Privileged: true}, fmt.Sprintf("violates PodSecurity %q", level+":latest"), "privileged")
}

// mutations asks for the marks of all relevant policies and of no other: the sum of value over the relevant ones. Nothing, if there is none.
func mutations(p *Probe, policies []Policy, value func(Policy) int) {
	relevant := with(policies, Relevant)
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

// proveDenials shows that each sampled relevant policy denies what asks to be denied by it, and that no sampled other does.
func proveDenials(k Kind, s Scope, policies []Policy) ([]Probe, *Count) {
	relevant := with(policies, Relevant)
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
		for _, one := range sample(with(policies, other)) {
			probes = append(probes, admitted(s, "spared-"+one.Short, one.Short+" is not evaluated", Pod{Labels: map[string]string{DenyLabel: one.Short}}))
		}
	}
	return probes, count
}

// privileged is like all, for the expression's other half.
func privileged(s Scope, all Probe) Probe {
	p := admitted(s, "bad-privileged", "the expression sees the pod's containers", Pod{Privileged: true})
	p.Want, p.Says, p.By = all.Want, all.Says, all.By
	return p
}

func policyName(one Policy) string { return one.Name }
