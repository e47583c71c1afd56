package admission

import (
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"tare/internal/load"
)

// The media types of bodies.
const (
	jsonType  = "application/json"
	patchType = "application/merge-patch+json"
)

// callPatch changes an object a little.
const callPatch = `{"metadata":{"annotations":{"` + callAnnotation + `":"` + load.CallMark + `"}}}`

// calls renders the mix. Names are new each time, so that no call of a trial meets an object of another.
func (p *arm) calls() ([]load.Operation, error) {
	p.epoch++
	var out []load.Operation
	for k, o := range p.operations {
		name := fmt.Sprintf("t%de%do%d", p.index, p.epoch, k)
		if o.startup() {
			call, err := p.startup(name)
			if err != nil {
				return nil, err
			}
			out = append(out, call)
			continue
		}
		w, err := p.wire(o, name)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", o.name, err)
		}
		out = append(out, load.Operation{
			Name: o.name, Weight: 1, Wire: w, Causes: causes(p.rightless()),
			Expect: strconv.Itoa(w.judge.status) + " with " + o.kind(),
		})
	}
	return out, nil
}

// kind returns the kind of object in an answer.
func (o operation) kind() string {
	if o.verb == verbList {
		return o.resource.kind + "List"
	}
	return o.resource.kind
}

// wire renders an operation. name is the prefix of the names of objects that it creates.
func (p *arm) wire(o operation, name string) (*wire, error) {
	w := &wire{caller: &p.identity, next: &atomic.Uint64{}, judge: p.judgeOf(o)}
	path, query := p.prefix+o.resource.path(p.namespace), ""
	if o.dryRun {
		query = dryRunQuery
	}
	host := p.endpoint.Host
	switch o.verb {
	case verbCreate:
		body, err := p.maker.object(o.resource, name+"-"+load.CallMark)
		if err != nil {
			return nil, err
		}
		w.numbered = []request{newRequest(http.MethodPost, path+query, host, jsonType, body)}
		return w, nil
	case verbList:
		w.numbered = []request{newRequest(http.MethodGet, path, host, "", nil)}
		return w, nil
	case verbDelete:
		if !o.dryRun {
			w.numbered = []request{newRequest(http.MethodDelete, path+"/"+p.doomed(o.resource)+load.CallMark, host, "", nil)}
			return w, nil
		}
	}
	items := p.stock[o.resource.noun]
	if len(items) == 0 {
		return w, nil // before the first Enter: only the mix's names are used
	}
	for _, item := range items {
		at := path + "/" + item.name + query
		switch o.verb {
		case verbGet:
			w.numbered = append(w.numbered, newRequest(http.MethodGet, at, host, "", nil))
		case verbDelete:
			w.numbered = append(w.numbered, newRequest(http.MethodDelete, at, host, "", nil))
		case verbPatch:
			w.numbered = append(w.numbered, newRequest(http.MethodPatch, at, host, patchType, []byte(callPatch)))
		case verbUpdate:
			w.numbered = append(w.numbered, newRequest(http.MethodPut, at, host, jsonType, item.body))
		}
	}
	return w, nil
}

// judgeOf returns the judge that knows a good answer to o.
func (p *arm) judgeOf(o operation) judge {
	j := judge{
		status: http.StatusOK,
		starts: [][]byte{[]byte(`{"kind":"` + o.kind() + `","apiVersion":"` + o.resource.version() + `",`)},
	}
	switch o.verb {
	case verbCreate:
		j.status = http.StatusCreated
		if o.resource.kind == "Pod" {
			j.holds = p.marks()
		}
	case verbDelete:
		j.starts = append(j.starts, []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"`))
	}
	return j
}
