package admission

import (
	"context"
	"flag"
	"os/signal"
	"strings"
	"syscall"

	rbacv1 "k8s.io/api/rbac/v1"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/ratelimit"
)

// rbacRate is the number of questions per second that tare asks a cluster about the user's rights.
const rbacRate = 20

// rbac holds the flags of `tare doctor --rbac`.
type rbac struct {
	kubeconfig, context string
	expose              bool
	need                cluster.Need
}

// rbacMode prints the rights that a run on a cluster needs.
func rbacMode() area.Mode {
	r := &rbac{need: cluster.Need{
		Mechanisms: []string{"vap", "map", "webhook", "mutating-webhook", "psa"}, Operations: []string{"create-pod-dry-run"},
	}}
	return area.Mode{
		Flag:  "rbac",
		Help:  "print the rights needed to measure admission on a cluster, and which of them you lack; check nothing else",
		Flags: r.flags,
		Run: func(ctx context.Context, sh *area.Shell) error {
			if r.context != "" && r.kubeconfig == "" {
				return area.Usage("--context needs --kubeconfig")
			}
			return planes{sh}.doctorRBAC(ctx, r)
		},
	}
}

// flags registers the flags that belong to --rbac.
func (r *rbac) flags(f *flag.FlagSet) {
	list := func(to *[]string) func(string) error {
		return func(text string) error { *to = strings.Split(text, ","); return nil }
	}
	f.StringVar(&r.kubeconfig, "kubeconfig", "",
		"with --rbac: kubeconfig of the cluster to ask; without it tare asks no cluster")
	f.StringVar(&r.context, "context", "", "with --rbac: context of the kubeconfig (default: its current one)")
	f.BoolVar(&r.expose, "expose-secrets", false,
		"with --rbac: send the kubeconfig's credentials even if its server is not verified")
	f.Func("mechanism", "with --rbac: `mechanisms` to be measured; kyverno and gatekeeper: policies of theirs", list(&r.need.Mechanisms))
	f.Func("operation", "with --rbac: `operations` to be measured", list(&r.need.Operations))
	f.BoolVar(&r.need.Metrics, "metrics", true, "with --rbac: include the optional right to read the server's "+
		"/metrics, and say what is missing without it")
}

// doctorRBAC prints the least rights, and asks the cluster which of them the user lacks. A missing right is not an
// error.
func (a planes) doctorRBAC(ctx context.Context, r *rbac) error {
	rules, err := cluster.Rules(r.need)
	if err != nil {
		return area.Usage("%w", err)
	}
	text, err := cluster.YAML(rules)
	if err != nil {
		return err
	}
	a.Print("%s", text)
	if r.kubeconfig == "" {
		a.Tell("no cluster was asked: with --kubeconfig FILE, tare prints which of these rights you lack\n")
		return nil
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return a.printLacking(ctx, r, rules)
}

// printLacking prints, as comments below the role, the rights that the user of the kubeconfig lacks.
func (a planes) printLacking(ctx context.Context, r *rbac, rules []rbacv1.PolicyRule) error {
	kubeconfig, err := kit.ExpandHome(r.kubeconfig) // a shell leaves the ~ of --kubeconfig=~/.kube/config alone
	if err != nil {
		return area.Usage("--kubeconfig: %w", err)
	}
	for _, f := range kit.ExposedSecrets(&Spec{Kubeconfig: kubeconfig, Context: r.context}, nil) {
		a.Tell("warning: %s\n  next: %s\n", f.Message, f.Hint)
	}
	c, err := cluster.New(ctx, cluster.Options{
		Run: "doctor", Kubeconfig: kubeconfig, Context: r.context, ExposeSecrets: r.expose,
		Limit: ratelimit.New(clock.System{}, rbacRate),
	})
	if err != nil {
		return area.Usage("%w", err)
	}
	defer c.Close()
	version, err := c.Version(ctx)
	if err != nil {
		return err
	}
	user, err := c.User(ctx)
	if err != nil {
		return err
	}
	missing, err := c.Check(ctx, rules)
	if err != nil {
		return err
	}
	if user == "" {
		user = "the user"
	}
	for _, note := range c.Notes() {
		a.Print("# note: %s\n", note)
	}
	a.Print("# asked: %s, Kubernetes %s\n", c.Location(), version.GitVersion)
	if len(missing) == 0 {
		a.Print("# %s has all of these rights.\n", user)
		return nil
	}
	words := make([]string, len(missing))
	for i, m := range missing {
		words[i] = "#   " + m.String()
		if _, ok := m.Optional(); ok {
			words[i] += " (optional)"
		}
	}
	a.Print("# %s lacks %d of %d:\n%s\n", user, len(missing), len(cluster.Rights(rules)), strings.Join(words, "\n"))
	return nil
}
