package own

import "maps"

// candidates are the kinds that policies are commonly about, and what they deny.
func candidates() []candidate {
	template := func(pod tree) tree {
		return tree{"metadata": tree{"labels": labelsOf(pod)}, "spec": pod["spec"]}
	}
	around := func(replicas bool, spec tree) func(tree) tree {
		return func(pod tree) tree {
			out := tree{"metadata": tree{"labels": labelsOf(pod), "annotations": below(pod, "metadata")["annotations"]}}
			inner := template(pod)
			below(inner, "metadata", "labels")["tare.dev/probe"] = "true"
			s := tree{"template": inner, "selector": tree{"matchLabels": tree{"tare.dev/probe": "true"}}}
			if replicas {
				s["replicas"] = int64(1)
			}
			maps.Copy(s, spec)
			out["spec"] = s
			return out
		}
	}
	job := func(pod tree) tree {
		spec := below(pod, "spec")
		if spec["restartPolicy"] == nil || spec["restartPolicy"] == "Always" {
			spec["restartPolicy"] = "Never"
		}
		return tree{"metadata": tree{"labels": labelsOf(pod)}, "spec": tree{"template": template(pod)}}
	}
	return []candidate{
		{"", "v1", "pods", "Pod", func(pod tree) tree { return pod }, nil},
		{"apps", "v1", "deployments", "Deployment", around(true, nil), nil},
		{"apps", "v1", "statefulsets", "StatefulSet", around(true, tree{"serviceName": "odd"}), nil},
		{"apps", "v1", "replicasets", "ReplicaSet", around(true, nil), nil},
		{"apps", "v1", "daemonsets", "DaemonSet", around(false, nil), nil},
		{"", "v1", "replicationcontrollers", "ReplicationController", func(pod tree) tree {
			o := around(true, nil)(pod)
			below(o, "spec")["selector"] = tree{"tare.dev/probe": "true"}
			return o
		}, nil},
		{"", "v1", "podtemplates", "PodTemplate", func(pod tree) tree { return tree{"template": template(pod)} }, nil},
		{"batch", "v1", "jobs", "Job", job, nil},
		{"batch", "v1", "cronjobs", "CronJob", func(pod tree) tree {
			j := job(pod)
			return tree{"metadata": j["metadata"], "spec": tree{
				"schedule": "* * * * *", "jobTemplate": tree{"metadata": j["metadata"], "spec": j["spec"]},
			}}
		}, nil},
		{"", "v1", "services", "Service", nil, services()},
		{"networking.k8s.io", "v1", "ingresses", "Ingress", nil, ingresses()},
		{"rbac.authorization.k8s.io", "v1", "roles", "Role", nil, roles()},
		{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", nil, roleBindings()},
		{"", "v1", "configmaps", "ConfigMap", nil, []oddity{
			{"without labels", tree{"data": tree{"key": "value"}}},
			{"with a password", tree{"data": tree{
				"aws_secret_access_key": "odd-password", "password": "odd", "key": "-----BEGIN PRIVATE KEY-----",
			}}},
		}},
		{"", "v1", "secrets", "Secret", nil, []oddity{
			{"without labels", tree{"data": tree{}}},
			{"of basic authentication", tree{"type": "kubernetes.io/basic-auth", "stringData": tree{
				"username": "odd", "password": "odd",
			}}},
		}},
		{"", "v1", "serviceaccounts", "ServiceAccount", nil, []oddity{
			{"without labels", tree{}}, {"whose token is mounted", tree{"automountServiceAccountToken": true}},
		}},
		{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", nil, claims()},
		{"autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", nil, []oddity{
			{"without labels", tree{"spec": tree{"minReplicas": 1, "maxReplicas": 1000, "scaleTargetRef": tree{
				"apiVersion": "apps/v1", "kind": "Deployment", "name": "odd",
			}}}},
		}},
		{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", nil, []oddity{
			{"that lets no pod go", tree{"spec": tree{"maxUnavailable": 0, "selector": tree{}}}},
			{"that keeps all pods", tree{"spec": tree{"minAvailable": "100%", "selector": tree{}}}},
		}},
		{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", nil, []oddity{
			{"that lets everything in", tree{"spec": tree{"podSelector": tree{}, "ingress": []any{tree{}}}}},
		}},
		{"", "v1", "resourcequotas", "ResourceQuota", nil, []oddity{{"without labels", tree{"spec": tree{}}}}},
		{"", "v1", "limitranges", "LimitRange", nil, []oddity{{"without labels", tree{"spec": tree{"limits": []any{}}}}}},
		{"", "v1", "endpoints", "Endpoints", nil, []oddity{{"without labels", tree{}}}},
		{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", nil, []oddity{
			{"without labels", tree{"addressType": "IPv4", "endpoints": []any{}}},
		}},
		{"coordination.k8s.io", "v1", "leases", "Lease", nil, []oddity{{"without labels", tree{"spec": tree{}}}}},
		{"storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", nil, []oddity{
			{"without labels", tree{"storageClassName": "odd"}},
		}},
	}
}

// labelsOf copies the labels of a pod.
func labelsOf(pod tree) tree {
	out := tree{}
	meta, _ := pod["metadata"].(tree)
	of, _ := meta["labels"].(tree)
	maps.Copy(out, of)
	return out
}

func services() (out []oddity) {
	service := func(what string, spec tree) {
		if spec["type"] != "ExternalName" {
			spec["ports"] = []any{tree{"port": 80}}
		}
		out = append(out, oddity{what, tree{"spec": spec}})
	}
	service("without labels", tree{})
	service("of type NodePort", tree{"type": "NodePort"})
	service("of type LoadBalancer", tree{"type": "LoadBalancer"})
	service("of type ExternalName", tree{"type": "ExternalName", "externalName": "odd.example"})
	service("with addresses from outside", tree{"externalIPs": []any{"192.0.2.1"}})
	return out
}

func ingresses() (out []oddity) {
	ingress := func(what, host string, spec tree) {
		rule := tree{"http": tree{"paths": []any{tree{"path": "/", "pathType": "Prefix", "backend": tree{
			"service": tree{"name": "odd", "port": tree{"number": 80}},
		}}}}}
		if host != "" {
			rule["host"] = host
		}
		spec["rules"] = []any{rule}
		out = append(out, oddity{what, tree{"spec": spec}})
	}
	ingress("without TLS", "odd.example", tree{})
	ingress("of all hosts", "", tree{})
	tls := []any{tree{"hosts": []any{"*.odd.example"}, "secretName": "odd"}}
	ingress("of a wildcard", "*.odd.example", tree{"tls": tls})
	return out
}

func roles() (out []oddity) {
	role := func(what string, groups, resources, verbs string) {
		out = append(out, oddity{what, tree{"rules": []any{tree{
			"apiGroups": []any{groups}, "resources": []any{resources}, "verbs": []any{verbs},
		}}}})
	}
	role("that may do everything", "*", "*", "*")
	role("that reads secrets", "", "secrets", "get")
	role("that enters pods", "", "pods/exec", "create")
	role("that makes pods", "", "pods", "create")
	role("that changes roles", "rbac.authorization.k8s.io", "roles", "escalate")
	role("that acts as others", "", "serviceaccounts", "impersonate")
	role("that deletes", "", "pods", "delete")
	role("that reaches the node", "", "nodes/proxy", "get")
	return out
}

func roleBindings() (out []oddity) {
	const rbac = "rbac.authorization.k8s.io"
	binding := func(what, role, kind, subject string) {
		s := tree{"kind": kind, "name": subject, "apiGroup": rbac}
		if kind == "ServiceAccount" {
			s = tree{"kind": kind, "name": subject}
		}
		out = append(out, oddity{what, tree{
			"roleRef": tree{"apiGroup": rbac, "kind": "ClusterRole", "name": role}, "subjects": []any{s},
		}})
	}
	binding("of an administrator", "cluster-admin", "User", "odd")
	binding("of the default account", "view", "ServiceAccount", "default")
	binding("of everybody", "view", "Group", "system:unauthenticated")
	binding("of masters", "view", "Group", "system:masters")
	return out
}

func claims() (out []oddity) {
	claim := func(what, mode, size, class string) {
		spec := tree{"accessModes": []any{mode}, "resources": tree{"requests": tree{"storage": size}}}
		if class != "" {
			spec["storageClassName"] = class
		}
		out = append(out, oddity{what, tree{"spec": spec}})
	}
	claim("without labels", "ReadWriteOnce", "1Gi", "")
	claim("of a lot", "ReadWriteOnce", "100Ti", "")
	claim("for many", "ReadWriteMany", "1Gi", "odd")
	return out
}
