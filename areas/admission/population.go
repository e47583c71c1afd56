package admission

import (
	"errors"
	"fmt"

	"tare/areas/admission/mechanism"
)

// population returns the geometry of the policies of kind k. It ignores values of the section that do not apply to k,
// and rejects levels of the treatment that do not.
func (s *Spec) population(k mechanism.Kind, levels map[string]string) (mechanism.Population, error) {
	total := 1
	if s.Policies != nil {
		total = *s.Policies
	}
	if k == mechanism.PSA && total > 1 {
		return mechanism.Population{},
			fmt.Errorf("policies: psa is one level of the namespace, not a number of policies: leave policies out")
	}
	p := mechanism.Default(k, total)
	if k.Populated() {
		s.geometry(k, &p)
	}
	for _, x := range []struct {
		factor, word string
		applies      bool
		set          func(string)
	}{
		{"position", s.Position, k == mechanism.PSP, func(w string) { p.Position = mechanism.Position(w) }},
		{"bindings", s.Bindings, k == mechanism.PSP, func(w string) { p.Bindings = mechanism.Bindings(w) }},
		{"irrelevant", s.Irrelevant, k.Populated(), func(w string) { p.Irrelevant = mechanism.Irrelevance(w) }},
		{"level", s.Level, k == mechanism.PSA, func(w string) { p.Level = w }},
	} {
		if x.word != "" && (x.applies || (levels[x.factor] != "" && k != mechanism.None)) {
			x.set(x.word)
		}
	}
	if s.Params != nil && (k == mechanism.VAP || levels["params"] != "" && k != mechanism.None) {
		p.Params = *s.Params
	}
	if p.Params > 0 {
		if err := s.checkParams(); err != nil {
			return p, err
		}
	}
	err := mechanism.Check(k, p)
	if r, ok := errors.AsType[*mechanism.Refusal](err); ok && r.Field == "total" {
		return p, fmt.Errorf("policies: %s: %s", r.Reason, r.Instead)
	}
	return p, err
}

// checkParams refuses what parameters do not go with.
func (s *Spec) checkParams() error {
	switch {
	case s.VAP != nil && s.VAP.Param:
		return errors.New("params: with vap.param all policies read one parameter: leave out one of them")
	case s.Kubeconfig != "", s.Embedded != nil && s.Embedded.Shared:
		return errors.New("params: only on a control plane of each treatment's own: elsewhere policies come and go, and " +
			"kube-apiserver 1.36 does not find the parameters of those that come later")
	}
	return nil
}

// geometry sets how many policies are bound, and how many of those apply to the pod.
func (s *Spec) geometry(k mechanism.Kind, p *mechanism.Population) {
	if s.Bound != nil {
		p.Bound = *s.Bound
		if k != mechanism.PSP {
			p.Useable = p.Bound
		}
	}
	if s.Useable != nil {
		p.Useable = *s.Useable
	}
}
