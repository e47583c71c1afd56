package protocol

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tare/areas/decision/model"
	"tare/internal/kit/oneshot"
)

// openFGABatch is how many tuples one write may hold (the server's default for OPENFGA_MAX_TUPLES_PER_WRITE).
const openFGABatch = 100

// loadOpenFGA makes a store of that name, writes the model, then the tuples, as many at a time as a server takes.
func loadOpenFGA(ctx context.Context, s *Session, set model.Set, name string) (Options, error) {
	o, err := fillStore(ctx, s, set, name)
	if err != nil {
		return s.Options, fmt.Errorf("load %d policies: %w", set.N, err)
	}
	return o, nil
}

func fillStore(ctx context.Context, s *Session, set model.Set, name string) (o Options, err error) {
	o = s.Options
	c := newAdmin(s)
	defer c.conn.Close()
	var store struct{ ID string }
	if err := c.call(ctx, http.MethodPost, "/stores", map[string]string{"name": storeName(name)}, &store); err != nil {
		return o, err
	}
	if store.ID == "" {
		return o, errors.New("POST /stores: the answer holds no id")
	}
	base := "/stores/" + url.PathEscape(store.ID)
	var written struct {
		ID string `json:"authorization_model_id"`
	}
	if err := c.call(ctx, http.MethodPost, base+"/authorization-models", json.RawMessage(model.OpenFGASchema()),
		&written); err != nil {
		return o, err
	}
	if written.ID == "" {
		return o, fmt.Errorf("POST %s/authorization-models: the answer holds no authorization_model_id", base)
	}
	o.Section = &OpenFGA{Store: store.ID, Model: written.ID}
	for batch := range batches(set.OpenFGATuples(), openFGABatch) {
		body := map[string]any{"writes": map[string]any{"tuple_keys": batch}, "authorization_model_id": written.ID}
		if err := c.call(ctx, http.MethodPost, base+"/write", body, nil); err != nil {
			return o, err
		}
	}
	return o, nil
}

// A server can go on listing stores for ever: unloading ends after so many requests, and after so long.
const (
	mostRequests = 10_000
	unloadWithin = 5 * time.Minute
)

// unloadOpenFGA deletes all stores of that name.
func unloadOpenFGA(ctx context.Context, s *Session, name string) error {
	ctx, cancel := context.WithTimeout(ctx, unloadWithin)
	defer cancel()
	c := newAdmin(s)
	defer c.conn.Close()
	name = storeName(name)
	left := mostRequests
	call := func(method, path string, out any) (err error) {
		if left--; left < 0 {
			err = fmt.Errorf("that needs more than %d requests; remove the store %s yourself", mostRequests, name)
		} else {
			err = c.call(ctx, method, path, nil, out)
		}
		if err != nil {
			return fmt.Errorf("take the policies out again: %w", err)
		}
		return nil
	}
	next := ""
	for {
		var page struct {
			Stores []struct{ ID, Name string }
			Next   string `json:"continuation_token"`
		}
		query := url.Values{"name": {name}, "page_size": {"100"}}
		if next != "" {
			query.Set("continuation_token", next)
		}
		if err := call(http.MethodGet, "/stores?"+query.Encode(), &page); err != nil {
			return err
		}
		for _, store := range page.Stores {
			// A server that is too old to know the query's name lists all stores.
			if store.Name != name {
				continue
			}
			if err := call(http.MethodDelete, "/stores/"+url.PathEscape(store.ID), nil); err != nil {
				return err
			}
		}
		if page.Next == "" || page.Next == next {
			return nil
		}
		next = page.Next
	}
}

// maxStoreName is how many characters the name of a store may have; at least 3.
const maxStoreName = 64

// storeName returns name as OpenFGA takes it. Where that is not name itself, it ends with a checksum, so that different
// names stay different.
func storeName(name string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && (strings.ContainsRune("-_.", r) || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z') {
			return r
		}
		return '_'
	}, name)
	if plain == name && len(name) >= 3 && len(name) <= maxStoreName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	tail := "-" + hex.EncodeToString(sum[:8])
	return plain[:min(len(plain), maxStoreName-len(tail))] + tail
}

// batches returns the elements of all, at most n at a time.
func batches[T any](all iter.Seq[T], n int) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		var batch []T
		for x := range all {
			if batch = append(batch, x); len(batch) == n {
				if !yield(batch) {
					return
				}
				batch = nil
			}
		}
		if len(batch) > 0 {
			yield(batch)
		}
	}
}

// An admin makes one request after another, on one connection for as long as the decision point keeps it.
type admin struct {
	session *Session
	conn    oneshot.Conn
}

func newAdmin(s *Session) *admin { return &admin{session: s, conn: oneshot.Conn{Client: s.client()}} }

// call sends a document, and reads the answer into out; nil: it is not looked at. An answer other than 2xx is an error.
func (a *admin) call(ctx context.Context, method, path string, document, out any) error {
	r := request{method: method, path: path}
	if document != nil {
		body, err := json.Marshal(document)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		r.body = body
	}
	got, err := a.conn.Do(ctx, r.render(a.session), loadTimeout)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if got.Status < 200 || got.Status > 299 {
		return fmt.Errorf("%s %s: %s", method, path, a.session.describeStatus(got.Status, got.Body))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(got.Body, out); err != nil {
		return fmt.Errorf("%s %s: the answer is no JSON: %s", method, path, quote(a.session.redact(string(got.Body))))
	}
	return nil
}
