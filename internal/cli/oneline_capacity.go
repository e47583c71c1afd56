package cli

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/unit"
)

func (a *app) capacityCommand() *cobra.Command {
	var f oneLineFlags
	c := a.serverCommand(&cobra.Command{
		Use: "capacity URL", Short: "Find the rate at which a server breaks, and how it breaks",
		Long: "Searches for the highest rate that the server at URL holds, and overloads it for some seconds to see how\n" +
			"it breaks. The command writes the experiment file that it stands for, prints its plan and runs it.\n\n" +
			"Without --adapter, up to " + a.mostRequests() + " without credentials tell which protocol the server\nspeaks.\n" +
			requestHelp +
			"A server that is not on this machine needs --max-rate.\n\n" +
			"--budget 'p99 <= 50ms' also finds the highest rate at which that holds. Other budgets are those of an\n" +
			"experiment file: 'capacity >= 100/s', 'response.p99 <= 50ms at 100/s'.\n\n" +
			"Exit codes: as of 'tare run'.",
	}, &f, a.composeCapacity)
	proveFlag(c, &f.prove)
	return c
}

// composeCapacity writes the experiment that searches for the capacity of the server at an address.
func (a *app) composeCapacity(ctx context.Context, address string, server *serverFlags, f *oneLineFlags,
) (area.Composed, error) {
	slo, budgets, err := splitObjective(f.budgets)
	if err != nil {
		return area.Composed{}, err
	}
	f.budgets = budgets
	limits, err := f.limits()
	if err != nil {
		return area.Composed{}, err
	}
	at, err := a.spoken(ctx, address, server, &f.sourceFlags)
	if err != nil {
		return area.Composed{}, err
	}
	x := area.Composed{Label: "searches", Needs: at.needs()}
	x.What = fmt.Sprintf("the highest rate that %s holds, and how it breaks above it", at.url)
	load := ""
	if slo.limit != "" {
		x.What += fmt.Sprintf("; and the highest rate at which at most %s of the calls take longer than %s", slo.share,
			slo.limit)
		load += fmt.Sprintf("  slo: {limit: %s, share: %s}   # find the highest rate at which this holds, too\n", slo.limit,
			slo.share)
	}
	x.Text = at.asked("capacity",
		"At what rate does this server break, and how? The search overloads it for some seconds.", "", load+limits)
	return x, nil
}

// asked writes the experiment that asks a question about the server. target are further lines of its section, and rest
// is what follows the first line of the section load.
func (s spoken) asked(question, why, target, rest string) string {
	return fmt.Sprintf(`# %s
name: %s
area: %s
question: %s
target:
  adapter: %s
  url: %s
%s%sload:
  timeout: 5s   # a call that takes longer has failed: write what clients use
%s`, why, kit.NameOf(question, s.host()), s.area, question, s.adapter.Name, kit.Quote(s.url), s.options, target, rest)
}

// An objective is a limit for the response time that a share of the calls may exceed.
type objective struct{ limit, share string }

var objectivePattern = regexp.MustCompile(`^(response\.)?p(\d{1,2}(?:\.\d{1,3})?) *<= *(\d\S*)$`)

// splitObjective takes the budget without a rate out of the budgets of a search: the rate is what is searched for. In
// the others it adds the metric's name, which the quantile alone leaves out.
func splitObjective(budgets []string) (o objective, rest []string, err error) {
	for _, b := range budgets {
		m := objectivePattern.FindStringSubmatch(b)
		switch {
		case m != nil && o.limit != "":
			return o, nil, usage("--budget %s: one limit without a rate can be searched for; add one: 'response.p99 <= 50ms at "+
				"100/s'", b)
		case m != nil:
			limit, err := unit.ParseDuration(m[3])
			if err != nil {
				return o, nil, usage("--budget %s: %w", b, err)
			}
			q, err := strconv.ParseFloat(m[2], 64)
			if err != nil {
				return o, nil, usage("--budget %s: %w", b, err)
			}
			o = objective{limit: limit.String(), share: unit.Decimal(100-q, 5) + "%"}
		default:
			rest = append(rest, named(b))
		}
	}
	return o, rest, nil
}

// A spoken is a server at an address, and the adapter that speaks its protocol.
type spoken struct {
	area    string
	adapter area.Adapter
	url     string
	options string        // lines of the target section below the URL
	isPlain bool          // the command line says the request, which needs no more
	took    time.Duration // by an answer, as far as it was timed; 0: it was not
}

// needs says what to do where the address alone is not enough.
func (s spoken) needs() string {
	if s.isPlain {
		return ""
	}
	return cmp.Or(s.adapter.Needs, "see the options of "+s.adapter.Name+
		" on the page of its area: --set target.NAME=VALUE")
}

// host returns the host and port of the URL.
func (s spoken) host() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return ""
	}
	return u.Host
}

// spoken finds the adapter for an address, and writes what the flags say about the request.
func (a *app) spoken(ctx context.Context, address string, server *serverFlags, f *sourceFlags) (spoken, error) {
	if err := server.parse(); err != nil {
		return spoken{}, err
	}
	u, err := a.parseAddress(address)
	if err != nil {
		return spoken{}, err
	}
	if err := a.needsRate(ctx, u, f); err != nil {
		return spoken{}, err
	}
	var at spoken
	switch {
	case server.adapter != "":
		at, err = a.named(u, server.adapter)
	case server.describesRequest():
		at, err = a.plain(u, server)
	default:
		at, err = a.guess(ctx, u, f, server.sent.tls)
	}
	if err != nil {
		return spoken{}, err
	}
	return at.with(server)
}

// named finds the adapter of a name.
func (a *app) named(u *url.URL, adapter string) (spoken, error) {
	at, speak := a.speaker(func(x area.Adapter) bool { return x.Name == adapter })
	if at.area == "" {
		return at, usage("--adapter %s: no such protocol of a server; 'tare list adapters' names those of %s", adapter,
			strings.Join(speak, " and "))
	}
	at.url = u.String()
	return at, nil
}

// speaker finds the first adapter for servers that is as wanted; without one its area is empty. speak are the areas
// that have adapters for servers.
func (a *app) speaker(isWanted func(area.Adapter) bool) (at spoken, speak []string) {
	for _, ar := range a.Areas {
		adapters := ar.Parts().Adapters
		if !ar.Offers().AnyRate.Given || len(adapters) == 0 {
			continue
		}
		speak = append(speak, ar.Name())
		if i := slices.IndexFunc(adapters, isWanted); i >= 0 && at.area == "" {
			at = spoken{area: ar.Name(), adapter: adapters[i]}
		}
	}
	return at, speak
}

// withScheme adds http:// to an address on loopback that has a host and a port but no scheme, and prints a note. For
// other hosts the user must say which scheme is meant: over http credentials can be read on the way.
func (a *app) withScheme(address string) (string, error) {
	if strings.Contains(address, "://") || strings.ContainsAny(address, "@?#") {
		return address, nil
	}
	switch {
	case kit.LoopbackPort(address):
		a.tell("%-9s http://%s: http, since the address has no scheme\n", "address", address)
		return "http://" + address, nil
	case kit.HasPort(address):
		return "", usage("%s has no scheme; write http://%[1]s or https://%[1]s", address)
	}
	return address, nil
}

// parseAddress parses an address of the command line. Its errors do not quote what may hold a credential.
func (a *app) parseAddress(address string) (*url.URL, error) {
	address, err := a.withScheme(address)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		if how := a.policies(address); how != nil {
			return nil, how
		}
		return nil, usage("this is not a URL with a host; write one such as http://127.0.0.1:8080")
	case u.User != nil && a.sendsRequests():
		return nil, usage("a URL must not hold credentials: they would be kept in the record; write the value of the " +
			"header to a file, such as 'Basic …', and give its place: -H 'Authorization: @FILE'")
	case u.User != nil:
		return nil, usage("a URL must not hold credentials: they would be kept in the record; the page of the area " +
			"('tare list areas') says where they go")
	case kit.CheckPort(u) != nil:
		return nil, usage("%w", kit.CheckPort(u))
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, usage("leave out the query of the URL, which may hold a secret%s", a.queries())
	case u.Scheme != "http" && u.Scheme != "https" && len(a.speaking(u.Scheme)) == 0:
		return nil, usage("%s: tare asks http and https addresses%s", address, a.otherSchemes())
	}
	return u, nil
}

// queries says how the query of an address is sent.
func (a *app) queries() string {
	for _, ar := range a.Areas {
		for _, x := range ar.Parts().Adapters {
			if x.Query != "" {
				return "; where it holds none, use " + x.Query
			}
		}
	}
	return ""
}

// otherSchemes says which adapters have addresses of other schemes.
func (a *app) otherSchemes() (text string) {
	for _, ar := range a.Areas {
		for _, x := range ar.Parts().Adapters {
			if len(x.Schemes) > 0 {
				text += ", and with --adapter " + x.Name + " " + strings.Join(x.Schemes, " and ")
			}
		}
	}
	return text
}

// needsRate refuses to ask a server that may be on another machine before it is known how much that server may be sent.
func (a *app) needsRate(ctx context.Context, u *url.URL, f *sourceFlags) error {
	const next = "say how much may be sent there at most: --max-rate 100/s"
	if text := f.value("load.max_rate"); text != "" {
		if _, err := unit.ParseRate(text); err != nil {
			return usage("--max-rate: %w", err)
		}
		return nil
	}
	if !kit.LoopbackHost(u.Hostname()) {
		return usage("%s is not on this machine; %s", u.Host, next)
	}
	addr, err := kit.ResolveHost(ctx, u)
	if err != nil {
		return a.unheard(u, err)
	}
	d := net.Dialer{Timeout: guessWithin}
	c, err := d.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return a.unheard(u, err)
	}
	_ = c.Close()                                    // nothing was sent
	for _, f := range kit.Unseen(addr, area.Env{}) { // the plan, or the run, prints what is only a warning
		if f.Severity == area.Error {
			return usage("%s; %s", f.Message, next)
		}
	}
	return nil
}
