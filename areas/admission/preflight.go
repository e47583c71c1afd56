package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/unit"
)

// The memory that a control plane needs, in bytes: etcd and kube-apiserver, in addition scheduler and
// controller-manager, and a simulated node with its pods.
const (
	planeBytes    = 400 << 20
	workersBytes  = 200 << 20
	nodeBytes     = 1 << 20
	policyBytes   = 400 << 10 // a compiled policy in CEL
	engineBytes   = 500 << 20 // an engine, and its definitions in kube-apiserver
	checkedWithin = askWithin
)

// Preflight implements area.Area. It checks that control planes are available, which may build them unless this is only
// a look, and that the host has memory for them; that a user's cluster answers, and that the user has the rights for
// the run. It changes nothing.
func (Area) Preflight(ctx context.Context, s area.Spec, env area.Env) []area.Finding {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	chosen, err := chosen(env.Operations)
	if err != nil {
		return []area.Finding{area.Fault("", err, "")}
	}
	var out []area.Finding
	var plans []plan
	for _, t := range kit.AtLeastOne(env.Treatments) {
		p, err := spec.plan(t)
		if err == nil {
			err = p.checkOperations(chosen, env.Trespasses)
		}
		if err != nil {
			out = append(out, area.Fault("", err, ""))
			continue
		}
		plans = append(plans, p)
	}
	out = append(out, findBinaries(ctx, plans, env)...)
	out = append(out, findEngines(ctx, plans, env)...)
	out = append(out, checkMemory(plans)...)
	out = append(out, checkManifests(plans)...)
	if env.Look {
		out = append(out, spec.findDifferences(env.Treatments)...)
	}
	return append(out, checkClusters(ctx, plans, chosen, env)...)
}

// findDifferences says, before a run, in what the policies of bundles differ from those of the baseline, as far as no
// request shows it.
func (s *Spec) findDifferences(treatments []design.Treatment) (out []area.Finding) {
	i := slices.IndexFunc(treatments, func(t design.Treatment) bool { return t.Baseline })
	if i < 0 {
		return nil
	}
	from, base := s.filed(treatments[i])
	if base == nil {
		return nil
	}
	for _, t := range treatments {
		if t.Baseline || t.Control != area.Ordinary {
			continue
		}
		at, is := s.filed(t)
		if is == nil || at == from {
			continue
		}
		for _, says := range is.Unasked(base) {
			out = append(out, area.Finding{
				Path: "bundle", Severity: area.Info, Message: fmt.Sprintf("%s, beside %s: %s; a run that finds no request "+
					"answered otherwise ends undecided", at, from, says),
			})
		}
	}
	return out
}

// filed is the path of a treatment's bundle, and what the bundle holds: nil where the treatment has none, or where it
// cannot be read, which Validate reports.
func (s *Spec) filed(t design.Treatment) (at string, set *own.Set) {
	p, err := s.plan(t)
	if err != nil || p.kind != mechanism.Own {
		return "", nil
	}
	if set, err = own.Read(p.spec.Bundle, p.spec.Network); err != nil {
		return p.spec.Bundle, nil
	}
	return p.spec.Bundle, set
}

// findBinaries reports releases that this host cannot run, and for the others where they come from.
func findBinaries(ctx context.Context, plans []plan, env area.Env) (out []area.Finding) {
	tried := map[plane.Version]bool{}
	for i := range plans {
		p := &plans[i]
		if p.foreign || tried[p.version] {
			continue
		}
		tried[p.version] = true
		b, there, err := find(ctx, p, env)
		switch {
		case err != nil:
			out = append(out, findingOf(err))
		case !there:
			out = append(out, area.Finding{
				Path: "embedded", Severity: area.Info,
				Message: fmt.Sprintf("the control plane of Kubernetes %s is not there yet: a run builds it, once, which takes "+
					"minutes", p.version),
			})
		default:
			out = append(out, area.Finding{
				Path: "embedded", Severity: area.Info, Message: fmt.Sprintf("control plane: Kubernetes %s, etcd %s, from %s",
					b.Kubernetes, b.Etcd, b.Path),
			})
		}
	}
	return out
}

// find returns the binary of an embedded control plane. It builds a missing one unless this is only a look: there is
// then false.
func find(ctx context.Context, p *plan, env area.Env) (b plane.Binary, there bool, err error) {
	if env.Look {
		return plane.Seek(ctx, p.version, host(p, env))
	}
	b, err = plane.Find(ctx, p.version, host(p, env))
	return b, err == nil, err
}

// findEngines reports, for each engine that treatments need, where it comes from or why this host has none.
func findEngines(ctx context.Context, plans []plan, env area.Env) (out []area.Finding) {
	tried := map[string]bool{}
	for i := range plans {
		for _, k := range plans[i].neededPrograms() {
			version := plans[i].engineVersion(k)
			what := k.Title + " " + version
			if tried[what] {
				continue
			}
			tried[what] = true
			program, there, err := k.Seek(ctx, version, engineHost(env))
			if err == nil && !there && !env.Look {
				program, err = k.Find(ctx, version, engineHost(env))
				there = true
			}
			found := area.Finding{Path: k.Name, Severity: area.Info, Message: what + ", from " + program.Path}
			switch {
			case err != nil:
				found = area.Fault(k.Name, err, "")
			case !there:
				found.Message = what + " is not there yet: a run builds it, once, which takes minutes"
			}
			out = append(out, found)
		}
	}
	return out
}

// checkMemory warns when the control planes that run side by side need more memory than is free.
func checkMemory(plans []plan) []area.Finding {
	need, planes := memoryOf(plans)
	if planes == 0 {
		return nil
	}
	free, err := available("/proc/meminfo")
	if err != nil || need <= free {
		return nil
	}
	return []area.Finding{{
		Path: "embedded", Severity: area.Warning,
		Message: fmt.Sprintf("%s side by side: they need about %d MiB of memory, and %d MiB are free: what "+
			"does not fit is swapped or killed", unit.Count(planes, "control plane"), need>>20, free>>20),
		Hint: "set shared: true, so that treatments that differ in their policies only share one, or compare fewer " +
			"treatments",
	}}
}

// memoryOf estimates the memory of the plans' control planes, in bytes, and counts them.
func memoryOf(plans []plan) (bytes uint64, planes int) {
	shared := map[string]bool{}
	for i := range plans {
		p := &plans[i]
		if p.foreign {
			continue
		}
		if p.kind == mechanism.VAP || p.kind == mechanism.MAP {
			bytes += uint64(max(0, p.population.Total)) * policyBytes //nolint:gosec // not negative
		}
		if p.shared && shared[p.key()] {
			continue
		}
		shared[p.key()] = true
		planes++
		bytes += planeBytes
		bytes += uint64(len(p.neededPrograms())) * engineBytes
		if p.nodes > 0 {
			bytes += workersBytes + uint64(p.nodes)*nodeBytes
		}
	}
	return bytes, planes
}

// available returns the memory that is available without swapping, in bytes.
func available(file string) (uint64, error) {
	text, err := files.Kernel(filepath.Clean(file))
	if err != nil {
		var s unix.Sysinfo_t
		if err := unix.Sysinfo(&s); err != nil {
			return 0, err
		}
		return uint64(s.Freeram) * uint64(s.Unit), nil //nolint:unconvert // the types differ between architectures
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes uint64
		if n, err := fmt.Sscanf(line, "MemAvailable: %d kB", &kilobytes); err == nil && n == 1 {
			return kilobytes << 10, nil
		}
	}
	return 0, errors.New("there is no MemAvailable")
}

// checkClusters asks each cluster of the user's whether it answers, and which rights are missing.
func checkClusters(ctx context.Context, plans []plan, chosen []operation, env area.Env) (out []area.Finding) {
	done := map[string]bool{}
	for i := range plans {
		p := &plans[i]
		key := p.spec.Kubeconfig + "\x00" + p.spec.Context
		if !p.foreign || done[key] {
			continue
		}
		done[key] = true
		n, manifests := need(plans, key, chosen)
		out = append(out, p.checkCluster(ctx, n, manifests, env)...)
	}
	return out
}

// anyScope replaces a treatment's scope where only the form of manifests matters.
var anyScope = mechanism.Scope{Run: "preflight", Namespace: "preflight"}

// checkManifests reads the manifests, and applies none.
func checkManifests(plans []plan) (out []area.Finding) {
	for i := range plans {
		p := &plans[i]
		if p.kind != mechanism.Manifests {
			continue
		}
		if _, err := p.manifests(anyScope); err != nil {
			field, _, _ := strings.Cut(err.Error(), ":")
			if p.counted && field == "policies" {
				field = "" // it is the treatment's
			}
			return []area.Finding{area.Fault(field, err, "")}
		}
	}
	return out
}

// need returns what all treatments together do on one cluster, and the manifests that they apply there.
func need(plans []plan, key string, chosen []operation) (n cluster.Need, manifests []mechanism.Files) {
	n.Metrics = true
	for _, o := range chosen {
		n.Operations = append(n.Operations, o.name)
	}
	for i := range plans {
		if p := &plans[i]; p.foreign && p.spec.Kubeconfig+"\x00"+p.spec.Context == key {
			if p.kind == mechanism.Own {
				n.Mechanisms = append(n.Mechanisms, string(mechanism.VAP))
				if in, err := p.readBundle(); err == nil { // otherwise Validate has reported it
					n.Mechanisms = append(n.Mechanisms, in.Engines()...)
					manifests = append(manifests, mechanism.Files{Objects: in.Objects, Kinds: in.Kinds})
				}
				continue
			}
			n.Mechanisms = append(n.Mechanisms, string(p.kind))
			if p.kind == mechanism.Manifests {
				if files, err := p.manifests(anyScope); err == nil { // otherwise checkManifests has reported it
					manifests = append(manifests, files.before, files.after)
				}
			}
		}
	}
	return n, manifests
}

// resourcesOf finds the resources of manifests, on the server or in their definitions. Kinds that neither knows appear
// with an engine; their rights are unknown in advance.
func resourcesOf(ctx context.Context, c *cluster.Cluster,
	manifests []mechanism.Files,
) (out []schema.GroupVersionResource, unknown []schema.GroupVersionKind, err error) {
	defined := map[schema.GroupVersionKind]schema.GroupVersionResource{}
	var kinds []schema.GroupVersionKind
	for _, files := range manifests {
		maps.Copy(defined, mechanism.Defined(files.Objects))
		for _, k := range files.Kinds {
			if !slices.Contains(kinds, k) {
				kinds = append(kinds, k)
			}
		}
	}
	out, coming, err := c.Lookup(ctx, kinds)
	if err != nil {
		return nil, nil, err
	}
	for _, k := range coming {
		if r, ok := defined[k]; ok {
			out = append(out, r)
		} else if k.Group != own.ConstraintGroup { // those come with the run's templates
			unknown = append(unknown, k)
		}
	}
	return out, unknown, nil
}

// checkCluster asks one cluster.
func (p *plan) checkCluster(ctx context.Context, n cluster.Need, manifests []mechanism.Files,
	env area.Env,
) []area.Finding {
	ctx, cancel := context.WithTimeout(ctx, checkedWithin)
	defer cancel()
	c, err := cluster.New(ctx, cluster.Options{
		Run: "preflight", Kubeconfig: p.spec.Kubeconfig, Context: p.spec.Context, ExposeSecrets: p.spec.ExposeSecrets,
		Limit: env.Limit, Clock: env.Clock,
	})
	if err != nil {
		return []area.Finding{area.Fault("kubeconfig", err, "see that the file is there and that kubectl works with it")}
	}
	defer c.Close()
	version, err := c.Version(ctx)
	if err != nil {
		return []area.Finding{area.Fault("kubeconfig", err, "see that the cluster runs, that this host can reach it, and "+
			"that kubectl works with the same context")}
	}
	out := p.unseen(ctx, env)
	out = append(out, area.Finding{
		Path: "kubeconfig", Severity: area.Info,
		Message: fmt.Sprintf("cluster: Kubernetes %s at %s", version.GitVersion, c.Host()),
	})
	if err := c.NoControllers(ctx); err != nil {
		out = append(out, area.Fault("kubeconfig", err, "start one; of a control plane of tare's: tare plane up --nodes 1"))
	}
	var unknown []schema.GroupVersionKind
	if n.Manifests, unknown, err = resourcesOf(ctx, c, manifests); err != nil {
		return append(out, area.Fault("kubeconfig", err, ""))
	}
	out = append(out, judgeUnknown(unknown)...)
	return append(out, lackingRights(ctx, c, n)...)
}

// judgeUnknown says what follows if the cluster does not have kinds.
func judgeUnknown(unknown []schema.GroupVersionKind) (out []area.Finding) {
	var come []string
	for _, k := range unknown {
		of := &unstructured.Unstructured{}
		of.SetGroupVersionKind(k)
		if e := engine.Of(own.EngineOf(of)); e != nil {
			err := fmt.Errorf("the cluster has no kind %s in %s, which policies of %s's are", k.Kind, k.GroupVersion(), e.Title)
			return []area.Finding{area.Fault("bundle", err, "install "+e.Title+", in a version that has it, or leave "+
				"kubeconfig out: tare then runs one of its own")}
		}
		come = append(come, k.GroupKind().String())
	}
	if len(come) > 0 {
		out = append(out, area.Finding{
			Path: "manifests.before", Severity: area.Info,
			Message: "the cluster does not have these kinds yet, and no manifest defines them: an engine must, once the " +
				"objects before theirs are there: " + strings.Join(come, ", "),
		})
	}
	return out
}

// unseen reports it if the API server's address on this machine may lead to another host.
func (p *plan) unseen(ctx context.Context, env area.Env) []area.Finding {
	server, err := serverOf(p.spec.Kubeconfig, p.spec.Context)
	if err != nil {
		return nil // it has been reached
	}
	addr, err := kit.ResolveHost(ctx, server)
	if err != nil {
		return nil
	}
	return kit.Unseen(addr, env)
}

// lackingRights asks which rights the user lacks.
func lackingRights(ctx context.Context, c *cluster.Cluster, n cluster.Need) (out []area.Finding) {
	rules, err := cluster.Rules(n)
	if err != nil {
		return append(out, area.Fault("", err, ""))
	}
	lacking, err := c.Check(ctx, rules)
	if err != nil {
		return append(out, area.Fault("kubeconfig", err, ""))
	}
	return append(out, judgeRights(lacking)...)
}

// judgeRights reports missing rights: all that the run needs in one error, and for each optional one what is lost
// without it.
func judgeRights(lacking []cluster.Right) (out []area.Finding) {
	var needed []string
	for _, r := range lacking {
		lost, ok := r.Optional()
		if !ok {
			needed = append(needed, r.String())
			continue
		}
		out = append(out, area.Finding{
			Path: "kubeconfig", Severity: area.Warning, Message: fmt.Sprintf("the user lacks the right to %s: %s", r, lost),
			Hint: "tare doctor --rbac prints a role with it",
		})
	}
	if len(needed) > 0 {
		err := fmt.Errorf("the user lacks %s that the run needs: %s", unit.Count(len(needed), "right"),
			strings.Join(needed, ", "))
		out = append(out, area.Fault("kubeconfig", err, "tare doctor --rbac prints a role with all of them"))
	}
	return out
}
