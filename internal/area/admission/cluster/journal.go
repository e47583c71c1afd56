package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

// ChangeKind is the kind of changes that are objects on a cluster.
const ChangeKind = "objects"

// Change is what is about to be created, for the journal: all objects of this run of these resources, and of kinds that are yet to come, whose resources
// nobody knows. id is unique within the run. The data holds paths and names, never a credential. A control plane of our own, which ends as a
// whole, has none.
func (c *Cluster) Change(areaName, id string, resources []schema.GroupVersionResource, coming ...schema.GroupVersionKind) (area.Change, error) {
	if c.place.Kubeconfig == "" {
		return area.Change{}, errors.New("objects on a control plane of our own are not journaled: the plane is")
	}
	words := make([]string, len(resources))
	for i, r := range resources {
		words[i] = r.Group + "/" + r.Version + "/" + r.Resource
	}
	kinds := make([]string, len(coming))
	for i, k := range coming {
		kinds[i] = k.Group + "/" + k.Version + "/" + k.Kind
	}
	return area.Change{Area: areaName, Kind: ChangeKind, ID: id, Data: map[string]string{
		"kubeconfig": c.place.Kubeconfig, "context": c.place.Context, "server": c.place.Server, "ca_sha256": c.place.CA,
		"run": c.run, "resources": strings.Join(words, ","), "kinds": strings.Join(kinds, ","),
		"max_rate": strconv.FormatFloat(c.limit.Rate(), 'g', -1, 64),
	}}, nil
}

// Undo takes back a Change in any process, any number of times. It refuses when the kubeconfig now means another server. limit, unless it is nil,
// stands in place of the journal's.
func Undo(ctx context.Context, change area.Change, limit *ratelimit.Limiter, clk clock.Clock) error {
	j, err := parseChange(change.Data)
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	if clk == nil {
		clk = clock.System{}
	}
	if limit == nil {
		limit = ratelimit.New(clk, j.rate)
	}
	o := Options{Run: j.run, Kubeconfig: j.place.Kubeconfig, Context: j.place.Context, Limit: limit, Clock: clk}
	o.ExposeSecrets = true // the run went there in the same way: place is compared before anything is sent
	c, err := New(ctx, o)
	if err != nil {
		return fmt.Errorf("%w; what is left on %s carries the label %s=%s", err, j.place.Server, OwnerLabel, j.run)
	}
	defer c.Close()
	if c.place != j.place {
		return fmt.Errorf("context %q of %s meant %s when the run began, and now means %s: nothing was removed; what is left carries the label %s=%s",
			j.place.Context, j.place.Kubeconfig, j.place.describe(), c.place.describe(), OwnerLabel, j.run)
	}
	if err := c.RemoveAll(ctx, j.resources, j.coming...); err != nil {
		return err
	}
	return c.AwaitGone(ctx, j.coming)
}

// describe names the server so that two with one URL can be told apart.
func (p Place) describe() string {
	if p.CA == "" {
		return p.Server + " (no authority of its own)"
	}
	return p.Server + " (authority " + p.CA[:min(12, len(p.CA))] + ")"
}

// journaled is a change's data.
type journaled struct {
	place     Place
	run       string
	resources []schema.GroupVersionResource
	coming    []schema.GroupVersionKind // journals of older releases have none
	rate      float64
}

// parseChange reads a change's data.
func parseChange(data map[string]string) (j journaled, err error) {
	j.place = Place{Kubeconfig: data["kubeconfig"], Context: data["context"], Server: data["server"], CA: data["ca_sha256"]}
	j.run = data["run"]
	if j.place.Kubeconfig == "" || j.place.Context == "" || j.place.Server == "" {
		return j, errors.New("it does not say which cluster it was")
	}
	if err := checkRun(j.run); err != nil {
		return j, err
	}
	if j.rate, err = strconv.ParseFloat(data["max_rate"], 64); err != nil || j.rate < 0 || j.rate != j.rate {
		return j, fmt.Errorf("max_rate %q is no rate", data["max_rate"])
	}
	resources, err := triples(data["resources"], "resource")
	if err != nil {
		return j, err
	}
	for _, t := range resources {
		j.resources = append(j.resources, schema.GroupVersionResource{Group: t[0], Version: t[1], Resource: t[2]})
	}
	kinds, err := triples(data["kinds"], "kind")
	if err != nil {
		return j, err
	}
	for _, t := range kinds {
		j.coming = append(j.coming, schema.GroupVersionKind{Group: t[0], Version: t[1], Kind: t[2]})
	}
	if len(j.resources)+len(j.coming) == 0 {
		return j, errors.New("it does not say what was created")
	}
	return j, nil
}

// triples reads a list of group/version/name, separated by commas. what is the name's, for errors.
func triples(text, what string) (out [][3]string, err error) {
	if text == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ",") {
		part := strings.Split(word, "/")
		if len(part) != 3 || part[1] == "" || part[2] == "" {
			return nil, fmt.Errorf("%q is no group/version/%s", word, what)
		}
		out = append(out, [3]string(part))
	}
	return out, nil
}
