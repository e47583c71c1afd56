package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/mechanism"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/spelling"
)

// The limits of numbers, as in the schema.
const (
	maxPolicies = 20_000
	maxNodes    = 5000
	maxObjects  = 5000
)

// factors returns the factors that treatments can vary.
func factors() []string {
	return []string{
		"mechanism", "bundle", "kyverno", "gatekeeper", "audit", "policies", "bound", "useable", "position", "irrelevant",
		"bindings", "params", "level",
		"webhook_latency",
		"webhook_failure_policy", "webhook_timeout", "vap_failure_policy", "version", "nodes", "objects",
		"etcd", "shared", "kubeconfig", "context",
	}
}

// SecretFiles is area.Says.SecretFiles.
func (s *Spec) SecretFiles() []string {
	if s.Kubeconfig == "" {
		return nil
	}
	return cluster.SecretFiles(s.Kubeconfig, s.Context)
}

// Under implements area.Spec.
func (s *Spec) Under(t design.Treatment) (area.Spec, error) { return s.under(t.Levels) }

// under returns a copy of s with levels in place of the section's values. A level "kubeconfig" replaces an embedded
// control plane. Errors begin with the factor's name, or contain it.
func (s *Spec) under(levels map[string]string) (*Spec, error) {
	out := *s
	if s.Embedded != nil {
		out.Embedded = new(*s.Embedded)
	}
	if s.VAP != nil {
		out.VAP = new(*s.VAP)
	}
	if s.Webhook != nil {
		out.Webhook = new(*s.Webhook)
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if err := out.setLevel(name, levels[name]); err != nil {
			return nil, err
		}
	}
	return &out, nil
}

// setLevel applies one level.
func (s *Spec) setLevel(name, level string) (err error) {
	switch name {
	case "mechanism":
		s.Mechanism = level
	case "bundle":
		if level == string(mechanism.None) {
			s.Mechanism, s.Bundle = level, ""
			return nil
		}
		if s.Bundle, err = kit.ExpandHome(level); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case "kyverno":
		s.Kyverno = level
	case "gatekeeper":
		s.Gatekeeper = level
	case "audit":
		if err := s.Audit.UnmarshalText([]byte(level)); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case "position":
		s.Position = level
	case "irrelevant":
		s.Irrelevant = level
	case "bindings":
		s.Bindings = level
	case "level":
		s.Level = level
	case "version":
		s.embed().Version = level
	case "etcd":
		s.embed().Etcd = level
	case "shared":
		if level != "true" && level != "false" {
			return fmt.Errorf("%s: %q is neither true nor false", name, level)
		}
		s.embed().Shared = level == "true"
	case "kubeconfig":
		if s.Kubeconfig, err = kit.ExpandHome(level); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case "context":
		s.Context = level
	case "vap_failure_policy":
		if s.VAP == nil {
			s.VAP = &VAP{}
		}
		s.VAP.FailurePolicy = level
	case "webhook_latency", "webhook_failure_policy", "webhook_timeout":
		return s.setHook(name, level)
	default:
		return s.count(name, level)
	}
	return nil
}

// setHook applies a level that is an option of webhooks.
func (s *Spec) setHook(name, level string) error {
	if s.Webhook == nil {
		s.Webhook = &Webhook{}
	}
	var err error
	switch name {
	case "webhook_latency":
		err = s.Webhook.Latency.UnmarshalText([]byte(level))
	case "webhook_timeout":
		err = s.Webhook.Timeout.UnmarshalText([]byte(level))
	case "webhook_failure_policy":
		s.Webhook.FailurePolicy = level
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// setCount applies a level that is a number.
func (s *Spec) count(name, level string) (err error) {
	switch name {
	case "policies":
		s.Policies = new(int)
		*s.Policies, err = kit.ParseCount(name, level, 0, maxPolicies)
	case "bound":
		s.Bound = new(int)
		*s.Bound, err = kit.ParseCount(name, level, 0, maxPolicies)
	case "useable":
		s.Useable = new(int)
		*s.Useable, err = kit.ParseCount(name, level, 0, maxPolicies)
	case "params":
		s.Params = new(int)
		*s.Params, err = kit.ParseCount(name, level, 0, maxPolicies)
	case "nodes":
		s.embed().Nodes, err = kit.ParseCount(name, level, 0, maxNodes)
	case "objects":
		s.Objects, err = kit.ParseCount(name, level, 1, maxObjects)
	default:
		return fmt.Errorf("%s: there is no such factor; there are %s%s", name, strings.Join(factors(), ", "),
			spelling.DidYouMean(name, factors()))
	}
	return err
}

func (s *Spec) embed() *Embedded {
	if s.Embedded == nil {
		s.Embedded = &Embedded{}
	}
	return s.Embedded
}
