package mechanism

import (
	"bytes"
	"encoding/json"
)

// A Denial knows the answers by which the policies of a probe deny its pod, and no others.
type Denial struct {
	says [][]byte // as in JSON
	by   map[string]bool
}

// Denial returns what the probe's denial must look like.
func (p Probe) Denial() (*Denial, error) {
	d := &Denial{}
	for _, text := range p.Says {
		b, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		d.says = append(d.says, b[1:len(b)-1])
	}
	if len(p.By) > 0 {
		d.by = make(map[string]bool, len(p.By))
		for _, name := range p.By {
			d.by[name] = true
		}
	}
	return d, nil
}

// Matches reports whether an answer is this denial. It does not allocate.
func (d *Denial) Matches(status int, body []byte) bool {
	if RulingOf(status, body) != PolicyDenied {
		return false
	}
	for _, text := range d.says {
		if !bytes.Contains(body, text) {
			return false
		}
	}
	for rest := body; d.by != nil; {
		i := bytes.IndexAny(rest, `'"`)
		if i < 0 {
			return false
		}
		if d.by[string(bytes.TrimSuffix(rest[:i], []byte(`\`)))] {
			return true
		}
		rest = rest[i+1:]
	}
	return true
}
