package mechanism

import (
	"bytes"
	"encoding/json"
)

// A Denial knows the answers by which the policies of a probe deny its pod, and no others.
type Denial struct {
	says [][]byte // as in JSON
	by   map[string]bool
	any  [][]byte // as in JSON; one of them must be there
}

// Denial returns what the probe's denial must look like.
func (p Probe) Denial() (*Denial, error) {
	d := &Denial{}
	var err error
	if d.says, err = inJSON(p.Says); err == nil {
		d.any, err = inJSON(p.ByWords)
	}
	if err != nil {
		return nil, err
	}
	if len(p.By) > 0 {
		d.by = make(map[string]bool, len(p.By))
		for _, name := range p.By {
			d.by[name] = true
		}
	}
	return d, nil
}

// inJSON returns texts as they stand within a string of JSON.
func inJSON(texts []string) (out [][]byte, err error) {
	for _, text := range texts {
		b, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		out = append(out, b[1:len(b)-1])
	}
	return out, nil
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
	if d.any != nil && !containsAny(body, d.any) {
		return false
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

func containsAny(body []byte, texts [][]byte) bool {
	for _, text := range texts {
		if bytes.Contains(body, text) {
			return true
		}
	}
	return false
}
