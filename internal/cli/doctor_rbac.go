package cli

import (
	"context"
	"os/signal"
	"strings"
	"syscall"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/spf13/cobra"

	"tare/internal/area"
	"tare/internal/area/admission/cluster"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

// rbacRate is the number of questions per second that tare asks a cluster about the user's rights.
const rbacRate = 20

// rbac holds the flags of `tare doctor --rbac`.
type rbac struct {
	on                  bool
	kubeconfig, context string
	expose              bool
	need                cluster.Need
}

// flags registers the flags that belong to --rbac.
func (r *rbac) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&r.on, "rbac", false, "print the rights needed to measure admission on a cluster, and which of them you "+
		"lack; check nothing else")
	f.StringVar(&r.kubeconfig, "kubeconfig", "",
		"with --rbac: kubeconfig of the cluster to ask; without it tare asks no cluster")
	f.StringVar(&r.context, "context", "", "with --rbac: context of the kubeconfig (default: its current one)")
	f.BoolVar(&r.expose, "expose-secrets", false,
		"with --rbac: send the kubeconfig's credentials even if its server is not verified")
	f.StringSliceVar(&r.need.Mechanisms, "mechanism", []string{"vap", "map", "webhook", "mutating-webhook", "psa"}, "with --rbac: `mechanisms` to be measured")
	f.StringSliceVar(&r.need.Operations, "operation", []string{"create-pod-dry-run"}, "with --rbac: `operations` to be measured")
	f.BoolVar(&r.need.Metrics, "metrics", true, "with --rbac: include the optional right to read the server's "+
		"/metrics, and say what is missing without it")
}

// check refuses combinations of flags that contradict each other.
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

// doctorRBAC prints the least rights, and asks the cluster which of them the user lacks. A missing right is not an
// error.
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
		a.tell("no cluster was asked: with --kubeconfig FILE, tare prints which of these rights you lack\n")
		return a.lost
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := a.printLacking(ctx, r, rules); err != nil {
		return err
	}
	return a.lost
}

// printLacking prints, as comments below the role, the rights that the user of the kubeconfig lacks.
func (a *app) printLacking(ctx context.Context, r *rbac, rules []rbacv1.PolicyRule) error {
	kubeconfig, err := area.ExpandHome(r.kubeconfig) // a shell leaves the ~ of --kubeconfig=~/.kube/config alone
	if err != nil {
		return usage("--kubeconfig: %w", err)
	}
	c, err := cluster.New(ctx, cluster.Options{
		Run: "doctor", Kubeconfig: kubeconfig, Context: r.context, ExposeSecrets: r.expose,
		Limit: ratelimit.New(clock.System{}, rbacRate),
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
			words[i] += " (optional)"
		}
	}
	a.print("# %s lacks %d of %d:\n%s\n", user, len(missing), len(cluster.Rights(rules)), strings.Join(words, "\n"))
	return nil
}
