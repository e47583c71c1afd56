package cli

import (
	"context"
	"os/signal"
	"strings"
	"syscall"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spf13/cobra"

	"tare/internal/area/admission/cluster"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

// rbacRate is how many questions a second are asked of a cluster about the user's rights.
const rbacRate = 20

// rbac is what `tare doctor --rbac` was asked.
type rbac struct {
	on                  bool
	kubeconfig, context string
	expose              bool
	need                cluster.Need
}

// flags registers what belongs to --rbac.
func (r *rbac) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&r.on, "rbac", false, "print the rights that measuring admission on a cluster needs, and which of them you lack there; nothing else is tried")
	f.StringVar(&r.kubeconfig, "kubeconfig", "", "with --rbac: file that names the cluster to ask; without one no cluster is asked")
	f.StringVar(&r.context, "context", "", "with --rbac: context of the kubeconfig (default: its current one)")
	f.BoolVar(&r.expose, "expose-secrets", false, "with --rbac: send the kubeconfig's credentials even where its server is not verified")
	f.StringSliceVar(&r.need.Mechanisms, "mechanism", []string{"vap", "map", "webhook", "mutating-webhook", "psa"}, "with --rbac: `mechanisms` to be measured")
	f.StringSliceVar(&r.need.Operations, "operation", []string{"create-pod-dry-run"}, "with --rbac: `operations` to be measured")
	f.BoolVar(&r.need.Metrics, "metrics", true, "with --rbac: the right to read the server's /metrics as well, which may be left out; what is lost without it is said")
}

// check refuses flags that do not go together.
func (r *rbac) check(c *cobra.Command) error {
	own := []string{"kubeconfig", "context", "expose-secrets", "mechanism", "operation", "metrics"}
	refused, why := own, "belongs to --rbac"
	if r.on {
		refused, why = []string{"output", "time", "seed"}, "does not go with --rbac"
	}
	for _, name := range refused {
		if c.Flags().Changed(name) {
			return usage("--%s %s", name, why)
		}
	}
	if r.context != "" && r.kubeconfig == "" {
		return usage("--context needs --kubeconfig")
	}
	return nil
}

// doctorRBAC prints the least rights, and asks the cluster for what is missing. A right that is missing is no failure of doctor's.
func (a *app) doctorRBAC(ctx context.Context, r *rbac) error {
	rules, err := cluster.Rules(r.need)
	if err != nil {
		return usage("%w", err)
	}
	text, err := cluster.YAML(rules)
	if err != nil {
		return err
	}
	a.print("%s", text)
	if r.kubeconfig == "" {
		a.tell("no cluster was asked: --kubeconfig FILE says which of these rights you lack there\n")
		return a.lost
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := a.lacking(ctx, r, rules); err != nil {
		return err
	}
	return a.lost
}

// lacking prints, as comments below the role, what the user of the kubeconfig lacks.
func (a *app) lacking(ctx context.Context, r *rbac, rules []rbacv1.PolicyRule) error {
	c, err := cluster.New(ctx, cluster.Options{
		Run: "doctor", Kubeconfig: r.kubeconfig, Context: r.context, ExposeSecrets: r.expose, Limit: ratelimit.New(clock.System{}, rbacRate),
	})
	if err != nil {
		return usage("%w", err)
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
		a.print("# note: %s\n", note)
	}
	a.print("# asked: %s, Kubernetes %s\n", c.Location(), version.GitVersion)
	if len(missing) == 0 {
		a.print("# %s has all of these rights.\n", user)
		return nil
	}
	words := make([]string, len(missing))
	for i, m := range missing {
		words[i] = "#   " + m.String()
		if _, ok := m.Optional(); ok {
			words[i] += " (may be left out)"
		}
	}
	a.print("# %s lacks %d of %d:\n%s\n", user, len(missing), len(cluster.Rights(rules)), strings.Join(words, "\n"))
	return nil
}
