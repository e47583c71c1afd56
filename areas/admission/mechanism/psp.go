package mechanism

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const rbac = "rbac.authorization.k8s.io"

// renderPSP renders the policies, then the Roles that permit the bound ones, then the bindings of the Roles.
func renderPSP(p Population, s Scope) []*unstructured.Unstructured {
	all := Policies(p, s)
	out := make([]*unstructured.Unstructured, 0, p.Total+2)
	var bound []Policy
	for _, one := range all {
		out = append(out, podSecurityPolicy(p, s, one))
		if one.Role != Unbound {
			bound = append(bound, one)
		}
	}
	if p.Bindings != Each {
		return append(out, useRole(s, s.Namespace+".bound", names(bound, len(bound) == len(all))),
			useBinding(s, s.Namespace+".bound"))
	}
	for _, one := range bound {
		out = append(out, useRole(s, one.Name, []any{one.Name}))
	}
	for _, one := range bound {
		out = append(out, useBinding(s, one.Name))
	}
	return out
}

// names returns the policies' names, or nil, which for RBAC means every policy.
func names(policies []Policy, every bool) []any {
	if every {
		return nil
	}
	out := make([]any, 0, len(policies))
	for _, one := range policies {
		out = append(out, one.Name)
	}
	return out
}

// podSecurityPolicy allows pods without special requests, or rejects every pod.
func podSecurityPolicy(p Population, s Scope, one Policy) *unstructured.Unstructured {
	spec := map[string]any{
		"privileged": false, "allowPrivilegeEscalation": false, "requiredDropCapabilities": []any{"ALL"},
		"hostNetwork": false, "hostIPC": false, "hostPID": false,
		"seLinux": anyRule(), "supplementalGroups": anyRule(), "fsGroup": anyRule(), "readOnlyRootFilesystem": false,
	}
	allows := one.Role == Relevant || (one.Role == Unbound && p.Irrelevant == Unauthorized)
	maps.Copy(spec, allowNone())
	if allows {
		maps.Copy(spec, allowHarmless())
	}
	o := s.object("policy/v1beta1", "PodSecurityPolicy", one.Name, map[string]any{"spec": spec})
	// Any seccomp profile: pods of the restricted level must name one.
	o.SetAnnotations(map[string]string{"seccomp.security.alpha.kubernetes.io/allowedProfileNames": "*"})
	return o
}

func anyRule() map[string]any { return map[string]any{"rule": "RunAsAny"} }

// allowNone rejects every pod: none of the run's pods has this user, and every pod has the volume of its service
// account's token.
func allowNone() map[string]any {
	return map[string]any{
		"volumes": []any{},
		"runAsUser": map[string]any{
			"rule":   "MustRunAs",
			"ranges": []any{map[string]any{"min": int64(60000), "max": int64(60000)}},
		},
	}
}

func allowHarmless() map[string]any {
	return map[string]any{"volumes": []any{"*"}, "runAsUser": map[string]any{"rule": "MustRunAsNonRoot"}}
}

// useRole permits the named policies; all, if names is nil.
func useRole(s Scope, name string, names []any) *unstructured.Unstructured {
	rule := map[string]any{"apiGroups": []any{"policy"}, "resources": []any{"podsecuritypolicies"}, "verbs": []any{"use"}}
	if names != nil {
		rule["resourceNames"] = names
	}
	o := s.object(rbac+"/v1", "Role", name, map[string]any{"rules": []any{rule}})
	o.SetNamespace(s.Namespace)
	return o
}

// useBinding binds the role to those who create pods: the caller, and the pods' service accounts, which are checked
// first.
func useBinding(s Scope, role string) *unstructured.Unstructured {
	subjects := []any{map[string]any{"apiGroup": rbac, "kind": "Group", "name": "system:authenticated"}}
	if s.Caller != "" {
		subjects = []any{
			map[string]any{"apiGroup": rbac, "kind": "User", "name": s.Caller},
			map[string]any{"apiGroup": rbac, "kind": "Group", "name": "system:serviceaccounts:" + s.Namespace},
		}
	}
	o := s.object(rbac+"/v1", "RoleBinding", role, map[string]any{
		"roleRef": map[string]any{"apiGroup": rbac, "kind": "Role", "name": role}, "subjects": subjects,
	})
	o.SetNamespace(s.Namespace)
	return o
}
