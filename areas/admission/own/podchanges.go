package own

import (
	"slices"
	"strings"
)

// An image is a reference to one: a registry, a repository there, and a tag or a digest, each with what parts it from
// the rest. What a reference lacks is empty.
type image struct{ registry, repository, version string }

// imageOf reads a reference.
func imageOf(reference string) (i image) {
	name, digest, found := strings.Cut(reference, "@")
	if found {
		i.version = "@" + digest
	}
	if at := strings.LastIndexByte(name, ':'); at > strings.LastIndexByte(name, '/') {
		name, i.version = name[:at], name[at:]+i.version
	}
	i.repository = name
	if first, rest, found := strings.Cut(name, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		i.registry, i.repository = first+"/", rest
	}
	return i
}

// String is the reference.
func (i image) String() string { return i.registry + i.repository + i.version }

// A podChange makes a pod one that some policies deny.
type podChange struct {
	what string
	do   func(pod tree)
}

// usual are the changes that are tried on all kinds of workloads. The others are tried on pods and Deployments, and on
// a kind that a policy sees which sees neither of these.
func (c podChange) usual() bool {
	return slices.Contains([]string{
		plainPod, "privileged", "that may escalate its privileges", "without a security context", "as root",
		"with a writable root file system", "with SYS_ADMIN", "in the host's network", "with a folder of the host",
		"of the tag latest", "of an unknown registry", "without resources", "without probes", "without labels",
	}, c.what)
}

// plainPod is the pod without a change.
const plainPod = "as the measured one"

// MeasuredPod is the name of the request for the measured pod.
const MeasuredPod = "pod " + plainPod

// podChanges are what policies for pods are commonly about: the Pod Security Standards, resources, images, probes,
// labels, and what reaches the node or its neighbours.
func podChanges() []podChange {
	set := func(value any, path ...string) func(tree) { // a field of the pod's
		return func(pod tree) { below(pod, path[:len(path)-1]...)[path[len(path)-1]] = value }
	}
	inside := func(do func(container tree)) func(tree) { // of all containers
		return func(pod tree) {
			list, _ := below(pod, "spec")["containers"].([]any)
			for _, one := range list {
				if c, ok := one.(tree); ok {
					do(c)
				}
			}
		}
	}
	field := func(value any, path ...string) func(tree) { return inside(set(value, path...)) }
	without := func(path ...string) func(tree) {
		return inside(func(c tree) { delete(below(c, path[:len(path)-1]...), path[len(path)-1]) })
	}
	volume := func(source tree) func(tree) {
		source["name"] = "odd"
		return func(pod tree) {
			below(pod, "spec")["volumes"] = []any{source}
			inside(set([]any{tree{"name": "odd", "mountPath": "/odd"}}, "volumeMounts"))(pod)
		}
	}
	reference := func(do func(i *image)) func(tree) {
		return inside(func(c tree) {
			text, _ := c["image"].(string)
			i := imageOf(text)
			do(&i)
			c["image"] = i.String()
		})
	}
	latest := reference(func(i *image) { i.version = ":latest" })
	another := func(pod tree, with tree) []any { // container of the first one's image
		list, _ := below(pod, "spec")["containers"].([]any)
		with["name"] = "odd"
		if len(list) > 0 {
			first, _ := list[0].(tree)
			with["image"] = first["image"]
		}
		return []any{with}
	}
	env := func(value tree) func(tree) { return field([]any{value}, "env") }
	security := func(value any, name string) func(tree) { return field(value, "securityContext", name) }
	whole := func(value any, name string) func(tree) { return set(value, "spec", "securityContext", name) }
	capabilities := func(add ...any) func(tree) {
		return security(tree{"drop": []any{"ALL"}, "add": add}, "capabilities")
	}
	const meta = "metadata"
	return []podChange{
		{plainPod, func(tree) {}},
		{"privileged", func(p tree) {
			security(true, "privileged")(p)
			security(true, "allowPrivilegeEscalation")(p)
		}},
		{"that may escalate its privileges", security(true, "allowPrivilegeEscalation")},
		{"without a security context", func(p tree) {
			without("securityContext")(p)
			delete(below(p, "spec"), "securityContext")
		}},
		{"as root", func(p tree) {
			for _, to := range []func(any, string) func(tree){security, whole} {
				to(int64(0), "runAsUser")(p)
				to(false, "runAsNonRoot")(p)
			}
		}},
		{"of the group root", func(p tree) {
			whole(int64(0), "runAsGroup")(p)
			security(int64(0), "runAsGroup")(p)
			whole(int64(0), "fsGroup")(p)
			whole([]any{int64(0)}, "supplementalGroups")(p)
		}},
		{"with a writable root file system", security(false, "readOnlyRootFilesystem")},
		{"with SYS_ADMIN", capabilities("SYS_ADMIN")},
		{"with NET_ADMIN and NET_RAW", capabilities("NET_ADMIN", "NET_RAW")},
		{"with all capabilities", capabilities("ALL")},
		{"that drops no capability", without("securityContext", "capabilities")},
		{"without seccomp", func(p tree) {
			security(tree{"type": "Unconfined"}, "seccompProfile")(p)
			whole(tree{"type": "Unconfined"}, "seccompProfile")(p)
		}},
		{"without a seccomp profile", func(p tree) {
			without("securityContext", "seccompProfile")(p)
			delete(below(p, "spec", "securityContext"), "seccompProfile")
		}},
		{"without AppArmor", func(p tree) {
			security(tree{"type": "Unconfined"}, "appArmorProfile")(p)
			below(p, meta, "annotations")["container.apparmor.security.beta.kubernetes.io/main"] = "unconfined"
		}},
		{"with options of SELinux", func(p tree) {
			security(tree{"type": "spc_t", "user": "odd", "role": "odd"}, "seLinuxOptions")(p)
		}},
		{"with an unmasked /proc", func(p tree) {
			security("Unmasked", "procMount")(p)
			set(false, "spec", "hostUsers")(p) // which the API server demands with it
		}},
		{"with sysctls", whole([]any{tree{"name": "kernel.msgmax", "value": "65536"}}, "sysctls")},
		{"in the host's network", set(true, "spec", "hostNetwork")},
		{"with the host's processes", set(true, "spec", "hostPID")},
		{"with the host's IPC", set(true, "spec", "hostIPC")},
		{"with a host process of Windows", func(p tree) {
			for _, to := range []func(any, string) func(tree){security, whole} {
				to(tree{"hostProcess": true, "runAsUserName": `NT AUTHORITY\SYSTEM`}, "windowsOptions")(p)
			}
			set(true, "spec", "hostNetwork")(p)
		}},
		{"with one namespace of processes", set(true, "spec", "shareProcessNamespace")},
		{"with host aliases", set([]any{tree{"ip": "127.0.0.9", "hostnames": []any{"odd.example"}}}, "spec", "hostAliases")},
		{"with a port of the host", field([]any{tree{"containerPort": 8080, "hostPort": 8080}}, "ports")},
		{"with port 22", field([]any{tree{"containerPort": 22}}, "ports")},
		{"with a folder of the host", volume(tree{"hostPath": tree{"path": "/etc"}})},
		{"with the root of the host", volume(tree{"hostPath": tree{"path": "/"}})},
		{"with the runtime's socket", volume(tree{"hostPath": tree{"path": "/var/run/docker.sock"}})},
		{"with a volume of NFS", volume(tree{"nfs": tree{"server": "odd.example", "path": "/"}})},
		{"with a driver for volumes", volume(tree{"flexVolume": tree{"driver": "odd.example/odd"}})},
		{"with an unbounded emptyDir", volume(tree{"emptyDir": tree{}})},
		{"with a secret as a volume", volume(tree{"secret": tree{"secretName": "odd"}})},
		{"with a claim of a volume", volume(tree{"persistentVolumeClaim": tree{"claimName": "odd"}})},
		{"with a secret in its environment", env(tree{"name": "PASSWORD", "valueFrom": tree{
			"secretKeyRef": tree{"name": "odd", "key": "odd"},
		}})},
		{"with a password in its environment", env(tree{"name": "aws_secret_access_key", "value": "odd-password"})},
		{"of the tag latest", latest},
		{"without a tag", reference(func(i *image) { i.version = "" })},
		{"of an unknown registry", reference(func(i *image) { i.registry = "registry.odd.example/" })},
		{"of Docker's registry", reference(func(i *image) { i.registry = "docker.io/" })},
		{"without a registry", reference(func(i *image) { i.registry = "" })},
		{"of an unknown repository", reference(func(i *image) { i.repository = "odd" })},
		{"of a digest", reference(func(i *image) { i.version = "@sha256:" + strings.Repeat("0", 64) })},
		{"that never pulls", field("Never", "imagePullPolicy")},
		{"that pulls if its image is absent", field("IfNotPresent", "imagePullPolicy")},
		{"that always pulls", field("Always", "imagePullPolicy")},
		{"without resources", without("resources")},
		{"without limits", without("resources", "limits")},
		{"without requests", func(p tree) {
			field(tree{"cpu": "100m", "memory": "64Mi"}, "resources", "limits")(p)
			without("resources", "requests")(p)
		}},
		{"that takes a lot", field(tree{
			"requests": tree{"cpu": "64", "memory": "512Gi"}, "limits": tree{"cpu": "64", "memory": "512Gi"},
		}, "resources")},
		{"with other limits than requests", field(tree{
			"requests": tree{"cpu": "1m", "memory": "1Mi"}, "limits": tree{"cpu": "2", "memory": "2Gi"},
		}, "resources")},
		{"without probes", func(p tree) {
			for _, name := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
				without(name)(p)
			}
		}},
		{"with one probe for all", func(p tree) {
			probe := tree{"tcpSocket": tree{"port": 8080}}
			field(probe, "livenessProbe")(p)
			field(probe, "readinessProbe")(p)
		}},
		{"with probes of another host", func(p tree) {
			probe := tree{"httpGet": tree{"port": 8080, "host": "192.0.2.1"}}
			field(probe, "livenessProbe")(p)
			field(probe, "readinessProbe")(p)
		}},
		{"with a hook that runs a command", field(tree{
			"preStop": tree{"exec": tree{"command": []any{"true"}}},
		}, "lifecycle")},
		{"without an owner", func(p tree) { delete(below(p, meta), "ownerReferences") }},
		{"with sudo", field([]any{"sudo", "true"}, "command")},
		{"with a variable twice", field([]any{tree{"name": "X", "value": "1"}, tree{"name": "X", "value": "2"}}, "env")},
		{"of the tag latest that pulls if it is absent", func(p tree) {
			latest(p)
			field("IfNotPresent", "imagePullPolicy")(p)
		}},
		{"with a user's credentials", volume(tree{"hostPath": tree{"path": "/root/.aws/credentials"}})},
		{"with a command", field([]any{"/bin/sh", "-c", "sudo sshd"}, "command")},
		{"with a terminal", func(p tree) {
			field(true, "stdin")(p)
			field(true, "tty")(p)
		}},
		{"without labels", func(p tree) { delete(below(p, meta), "labels") }},
		{"with odd labels", set(tree{"app": "odd", "odd": "odd", "environment": "odd", "env": "odd"}, meta, "labels")},
		{"with odd annotations", set(tree{"odd.example/odd": "odd"}, meta, "annotations")},
		{"with a token of its account", set(true, "spec", "automountServiceAccountToken")},
		{"with an account of its own", set("odd", "spec", "serviceAccountName")},
		{"on a node of its choice", set("odd", "spec", "nodeName")},
		{"on a node of the control plane", func(p tree) {
			set(tree{"node-role.kubernetes.io/control-plane": ""}, "spec", "nodeSelector")(p)
			set([]any{tree{"operator": "Exists"}}, "spec", "tolerations")(p)
		}},
		{"of another scheduler", set("odd", "spec", "schedulerName")},
		{"that ends without grace", set(int64(0), "spec", "terminationGracePeriodSeconds")},
		{"that is not restarted", set("Never", "spec", "restartPolicy")},
		{"with a privileged init container", func(p tree) {
			below(p, "spec")["initContainers"] = another(p, tree{
				"securityContext": tree{"privileged": true, "runAsUser": int64(0)},
			})
		}},
		{"with a bare init container", func(p tree) {
			below(p, "spec")["initContainers"] = another(p, tree{})
		}},
		{"with a bare second container", func(p tree) {
			list, _ := below(p, "spec")["containers"].([]any)
			below(p, "spec")["containers"] = append(slices.Clip(list), another(p, tree{})...)
		}},
		{"with a runtime class", set("odd", "spec", "runtimeClassName")},
		{"with another DNS", func(p tree) {
			set("None", "spec", "dnsPolicy")(p)
			set(tree{"nameservers": []any{"192.0.2.1"}}, "spec", "dnsConfig")(p)
		}},
	}
}
