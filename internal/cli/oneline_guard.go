package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (a *app) guardCommand() *cobra.Command {
	var f oneLineFlags
	var adapter string
	var must mustRefuse
	c := &cobra.Command{
		Use: "guard URL", Args: exactly("URL"), Short: "Find out whether an overloaded server refuses what it must",
		Long: "Searches for the highest rate that the server at URL holds, and then asks it, at rates below and\n" +
			"above, for what it must refuse, among calls that it must allow. The command writes the experiment file\n" +
			"that it stands for, prints its plan and runs it.\n\n" +
			"What must be refused is known for most protocols ('tare list adapters'). For any other server say it:\n" +
			"  --without-header NAME   the same request without this header\n" +
			"  --forbidden PATH        a request for this path of the server\n" +
			"Both must be refused with status 401 or 403.\n\n" +
			"Without --adapter, up to six GET requests without credentials tell which protocol the server speaks.\n" +
			"A server that is not on this machine needs --max-rate.\n\n" +
			"Exit codes: as of 'tare run'.",
		RunE: func(c *cobra.Command, args []string) error {
			x, err := a.composeGuard(c.Context(), args[0], adapter, &f, &must)
			if err != nil {
				return err
			}
			return a.ask(c.Context(), x, &f)
		},
	}
	f.add(c)
	adapterFlag(c, &adapter)
	c.Flags().StringArrayVar(&must.without, "without-header", nil, "header without which a request must be refused")
	c.Flags().StringArrayVar(&must.forbidden, "forbidden", nil, "path of the server that must be refused")
	return c
}

// mustRefuse is what a server must refuse, as flags say it.
type mustRefuse struct{ without, forbidden []string }

// section writes it as lines of the target section of area identity.
func (m *mustRefuse) section() string {
	var out strings.Builder
	for _, name := range m.without {
		fmt.Fprintf(&out, "    - {name: %s, without: [%s]}\n", quote("a request without "+name), quote(name))
	}
	for _, path := range m.forbidden {
		fmt.Fprintf(&out, "    - {name: %s, path: %s}\n", quote("GET "+path), quote(path))
	}
	if out.Len() == 0 {
		return ""
	}
	return "  trespass:   # the request with what an entry changes; refused is what is answered with 401 or 403\n" +
		out.String()
}

// composeGuard writes the experiment that asks the server at an address for what it must refuse.
func (a *app) composeGuard(ctx context.Context, address, adapter string, f *oneLineFlags, must *mustRefuse,
) (composed, error) {
	limits, err := f.limits()
	if err != nil {
		return composed{}, err
	}
	at, err := a.spoken(ctx, address, adapter, &f.sourceFlags)
	if err != nil {
		return composed{}, err
	}
	if must.section() != "" && at.area != "identity" {
		return composed{}, usage("--without-header and --forbidden are for servers that a protocol of identity speaks to; "+
			"%s knows itself what must be refused", at.adapter)
	}
	x := composed{label: "guards", needs: at.needs}
	if at.adapter == "http-token" && must.section() == "" {
		x.needs = "say what it must refuse: --without-header NAME, --forbidden PATH, or a credential, which is then left " +
			"out and forged: --set 'target.http.bearer={env: TOKEN}'"
	}
	x.what = fmt.Sprintf("whether %s refuses what it must, at rates below and above the one that it holds", at.url)
	x.text = at.asked("guard", "Does this server refuse what it must, while it is overloaded?", must.section(), limits)
	return x, nil
}
