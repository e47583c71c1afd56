package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/unit"
)

func (a *app) guardCommand() *cobra.Command {
	var f oneLineFlags
	var must mustRefuse
	var rates string
	c := a.serverCommand(&cobra.Command{
		Use: "guard URL", Short: "Find out whether an overloaded server refuses what it must",
		Long: "Searches for the highest rate that the server at URL holds, and then asks it, at rates below and\n" +
			"above, for what it must refuse, among calls that it must allow. It raises the rate until the server is\n" +
			"overloaded: a server passes only if it was, or if --rates says which rates are enough. The command\n" +
			"writes the experiment file that it stands for, prints its plan and runs it.\n\n" +
			"What must be refused is known for most protocols ('tare list adapters'). For any other server say it:\n" +
			"  --without-header NAME   the same request without this header\n" +
			"  --forbidden PATH        a request for this path of the server\n" +
			"Both must be refused with status 401 or 403.\n\n" +
			"Without --adapter, up to " + a.mostRequests() + " without credentials tell which protocol the server\nspeaks.\n" +
			requestHelp +
			"A server that is not on this machine needs --max-rate.\n\n" +
			"Exit codes: as of 'tare run'.",
	}, &f, func(ctx context.Context, address string, server *serverFlags, f *oneLineFlags) (area.Composed, error) {
		return a.composeGuard(ctx, address, server, f, &must, rates)
	})
	c.Flags().StringArrayVar(&must.without, "without-header", nil, "header without which a request must be refused")
	c.Flags().StringArrayVar(&must.forbidden, "forbidden", nil, "path of the server that must be refused")
	c.Flags().StringVar(&rates, "rates", "", "rates to offer instead of a search, such as 100/s,500/s: they are enough "+
		"for a pass (load.rates)")
	return c
}

// mustRefuse is what a server must refuse, as flags say it.
type mustRefuse struct{ without, forbidden []string }

func (m *mustRefuse) given() bool { return len(m.without)+len(m.forbidden) > 0 }

// composeGuard writes the experiment that asks the server at an address for what it must refuse.
func (a *app) composeGuard(ctx context.Context, address string, server *serverFlags, f *oneLineFlags,
	must *mustRefuse, rates string,
) (area.Composed, error) {
	limits, err := f.limits()
	if err != nil {
		return area.Composed{}, err
	}
	load, err := ratesLine(rates)
	if err != nil {
		return area.Composed{}, err
	}
	at, err := a.spoken(ctx, address, server, &f.sourceFlags)
	if err != nil {
		return area.Composed{}, err
	}
	section := ""
	switch write := at.adapter.Trespass; {
	case must.given() && write == nil:
		return area.Composed{},
			usage("--without-header and --forbidden are not for %s, which knows itself what must be refused",
				at.adapter.Name)
	case must.given():
		section = write(must.without, must.forbidden)
	}
	x := area.Composed{Label: "guards", Needs: at.needs()}
	if at.adapter.GuardNeeds != "" && section == "" {
		x.Needs = at.adapter.GuardNeeds
	}
	x.What = fmt.Sprintf("whether %s refuses what it must, at rates below and above the one that it holds", at.url)
	if load != "" {
		x.What = fmt.Sprintf("whether %s refuses what it must, at %s", at.url, rates)
	}
	x.Text = at.asked("guard", "Does this server refuse what it must, while it is overloaded?", section, load+limits)
	return x, nil
}

// ratesLine writes the rates of a flag as a line of the section load; "" for none.
func ratesLine(rates string) (string, error) {
	if rates == "" {
		return "", nil
	}
	var out []string
	for text := range strings.SplitSeq(rates, ",") {
		r, err := unit.ParseRate(strings.TrimSpace(text))
		if err != nil {
			return "", usage("--rates: %w; list rates as in --rates 100/s,500/s", err)
		}
		out = append(out, r.String())
	}
	return "  rates: [" + strings.Join(out, ", ") + "]   # these are enough for a pass\n", nil
}
