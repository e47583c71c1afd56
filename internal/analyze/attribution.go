package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/report"
	"tare/internal/unit"
)

// pureShare is how large a part of all requests that were admitted for an action must be of one kind for the plugins'
// time to be that kind's: the server counts plugins by action, not by resource.
const pureShare = .95

// attributions splits the mean time of every operation that is a single request, under every treatment.
func (a *analysis) attributions(all []*witness, names []string, actions map[string]action) {
	for _, w := range all {
		for _, name := range names {
			x := actions[name]
			r := w.of(x.kind)
			total, ok := a.meanOf(w.treatment, name, x)
			if r == nil || !ok {
				continue
			}
			out := report.Attribution{Treatment: w.treatment, Operation: name, Total: &total}
			if out.Note = mixed(r, name, names, actions); out.Note == "" {
				w.attribute(&out, r, x, total)
			}
			a.rep.Attribution = append(a.rep.Attribution, out)
		}
	}
}

// mixed says why the server's requests are not the operation's alone.
func mixed(r *requests, name string, names []string, actions map[string]action) string {
	twins := slices.DeleteFunc(
		slices.Clone(names), func(other string) bool { return other == name || actions[other].kind != actions[name].kind },
	)
	if len(twins) > 0 {
		return "the server cannot tell it from " + strings.Join(twins, ", ")
	}
	own := float64(r.dry) / float64(r.n)
	if !actions[name].dryRun {
		own = 1 - own
	}
	if own < pureShare {
		return fmt.Sprintf("only %s of the %s that the server counted were of this kind", unit.Share(own), r)
	}
	return ""
}

// meanOf is the mean time that a call's request took at the client, from when it was sent until its answer was read.
func (a *analysis) meanOf(treatment, operation string, x action) (float64, bool) {
	if x.startup {
		p := a.phase(treatment, operation, phasePost)
		if p == nil || p.whole.Count() == 0 {
			return 0, false
		}
		return p.whole.Mean() / 1e9, true
	}
	o := a.operation(treatment, operation)
	if o == nil || o.Service == nil {
		return 0, false
	}
	return o.Service.Mean, true
}

// attribute splits total, in seconds. The server's own time is apiserver_request_duration_seconds; what it spent on
// webhooks is that less apiserver_request_sli_duration_seconds; the plugins' is
// apiserver_admission_controller_admission_duration_seconds, without the two that call webhooks; the store's is
// etcd_request_duration_seconds.
func (w *witness) attribute(out *report.Attribution, r *requests, x action, total float64) {
	var notes []string
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	server := r.mean()
	client := total - server
	if client < 0 {
		note("the server counted %s more than the client: they did not count the same requests", unit.Seconds(-client))
		client = 0
	}
	out.Server, out.Client, out.N = &server, &client, r.n
	rest := server
	take := func(v float64, ok bool) *float64 {
		if !ok {
			return nil
		}
		if v > rest {
			note("the parts add up to %s more than the whole", unit.Seconds(v-rest))
			v = rest
		}
		rest -= v
		return &v
	}
	out.Webhook = take(w.webhook(r, x, note))
	out.Storage = take(w.storage(r, x))
	out.Admission = take(w.plugins(r, x, note))
	out.Other = &rest
	out.Note = strings.Join(notes, "; ")
}

// webhook is the time that a request waited for webhooks; ok is false where none was called for this action, or where
// it cannot be told.
func (w *witness) webhook(r *requests, x action, note func(string, ...any)) (seconds float64, ok bool) {
	var own float64
	calls := uint64(0)
	for _, s := range w.parts {
		if s.part == "webhook" && acts(s.action, x.admission) {
			own, calls = own+s.seconds, calls+s.n
		}
	}
	apart, known := max(0, (r.seconds-r.sli)/float64(r.n)), r.indicated == r.n && r.n > 0
	switch {
	case calls == 0:
		if known && apart > .01*r.mean() {
			note("waiting in queues before the server, %s, is in other", unit.Seconds(apart))
		}
		return 0, false
	case !known: // 1.36 leaves dry runs out of the indicator: the plugins that call webhooks wait for them
		if apart, known = w.admitted(r, x, webhookPlugins); !known {
			note("the time of webhooks is not known and is in other")
			return 0, false
		}
	}
	if each := own / float64(r.n); each > 1.05*apart {
		note(
			"webhooks run side by side: their own times add up to %s a request, which waits for the slowest", unit.Seconds(each),
		)
	}
	return apart, true
}

// webhookPlugins are the admission plugins that do nothing but call webhooks.
var webhookPlugins = []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}

// plugins is the time of admission within the server's process, for each request of the kind.
func (w *witness) plugins(r *requests, x action, note func(string, ...any)) (seconds float64, ok bool) {
	var names []string
	for _, s := range w.parts {
		if s.part == "admission" && acts(s.action, x.admission) && !slices.Contains(webhookPlugins, s.name) {
			addOnce(&names, s.name)
		}
	}
	if len(names) == 0 {
		return 0, false
	}
	if seconds, ok = w.admitted(r, x, names); !ok {
		note("admission is not known and is in other: the server counts it by action, and only %s of all %s requests were "+
			"these",
			unit.Share(w.purity(r, x)), x.admission)
	}
	return seconds, ok
}

// purity is how large a part r is of all requests that were admitted for its action.
func (w *witness) purity(r *requests, x action) float64 {
	all := uint64(0)
	for _, k := range w.order {
		if admits(k.verb) == x.admission {
			all += w.kinds[k].n
		}
	}
	return float64(r.n) / float64(max(all, 1))
}

// admitted is the time of some admission plugins for each request of the kind; ok is false where too many other
// requests went through them.
func (w *witness) admitted(r *requests, x action, plugins []string) (seconds float64, ok bool) {
	share := w.purity(r, x)
	if x.admission == "" || share < pureShare {
		return 0, false
	}
	for _, s := range w.parts {
		if s.part == "admission" && acts(s.action, x.admission) && slices.Contains(plugins, s.name) {
			seconds += s.seconds
		}
	}
	return seconds / (float64(r.n) / share), true
}

// storage is the time of etcd for each request of the kind. Where others ask the same of the store, it is that of one
// request to it.
func (w *witness) storage(r *requests, x action) (seconds float64, ok bool) {
	n := uint64(0)
	for _, s := range w.parts {
		if s.part == "storage" && strings.EqualFold(s.action, x.storage) && s.name == x.resource {
			n, seconds = n+s.n, seconds+s.seconds
		}
	}
	if n == 0 {
		return 0, false
	}
	return seconds / float64(max(n, r.n)), true
}

// acts reports whether an admission action, "validate CREATE", is of an operation, "CREATE".
func acts(action, operation string) bool {
	return operation != "" && slices.Contains(strings.Fields(action), operation)
}

// admits is what admission calls a verb, "" for those that it is not asked about.
func admits(verb string) string {
	switch verb {
	case "POST":
		return "CREATE"
	case "PUT", "PATCH", "APPLY":
		return "UPDATE"
	case "DELETE", "DELETECOLLECTION":
		return "DELETE"
	}
	return ""
}
