package identity

import (
	"fmt"
	"maps"
	"slices"

	"tare/internal/kit"
)

// Notes implements area.Target.
func (t *target) Notes() []string {
	var notes []string
	at := map[string]int{} // treatments by address
	arms := t.arms.Ready()
	t.mu.Lock()
	staged := t.staged
	t.mu.Unlock()
	for _, p := range arms {
		notes = append(notes, p.notes()...)
		if len(arms) > 1 && !staged {
			notes = append(notes, p.state()...)
		}
		if p.url != nil {
			at[p.url.Host]++
		}
	}
	for _, host := range slices.Sorted(maps.Keys(at)) {
		if at[host] > 1 {
			notes = append(notes, fmt.Sprintf("%d arms share the endpoint at %s: what one leaves in its cache, the next finds",
				at[host], host))
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}

// notes returns what every report must carry.
func (p *arm) notes() []string {
	if p.url != nil {
		notes := kit.ConnectionNotes(p.url, p.spec.TLS, p.spec)
		if n := p.spec.noteBodyExposure(p.url, p.files); n != "" {
			notes = append(notes, n)
		}
		if o := httpOptions(p.spec); o.StatusOnly {
			notes = append(notes, fmt.Sprintf("an answer with status %d is good, whatever its body is: http.status_only is set",
				o.Status))
		}
		return notes
	}
	notes := []string{"the endpoint is tare's own reference, not a cloud's"}
	if p.throttled {
		notes = append(notes, noteThrottle)
	}
	if n := p.restarted(); n > 0 {
		notes = append(notes, fmt.Sprintf("the endpoint was restarted %d times", n))
	}
	if got := p.child(serverEndpoint).ready.Backlog; p.knobs.Backlog > got {
		notes = append(notes, fmt.Sprintf("net.core.somaxconn clips the listen backlog of %d to %d", p.knobs.Backlog, got))
	}
	return notes
}

// state says in which state treatments are compared.
func (p *arm) state() []string {
	switch {
	case p.url != nil || p.operation != opToken || !p.knobs.Cache:
		return nil
	case p.knobs.TTL > longLife:
		return []string{fmt.Sprintf("caches are warm: where there is one, it held every identity's token before the first "+
			"block, and tokens live %v", p.knobs.TTL)}
	}
	return []string{fmt.Sprintf("tokens live %v: where there is a cache, they expire and are renewed within each trial",
		p.knobs.TTL)}
}
