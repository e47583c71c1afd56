package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

// ChangeKind is the kind of changes that are objects on a cluster.
const ChangeKind = "objects"

// Change returns the journal entry for what is about to be created: all objects of this run of these resources, and of
// kinds that do not exist yet, whose resources are unknown. id is unique within the run. The data holds paths and
// names, never a credential. It is an error for an embedded control plane, which ends as a whole.
func (c *Cluster) Change(areaName, id string, resources []schema.GroupVersionResource,
	coming ...schema.GroupVersionKind,
) (area.Change, error) {
	if c.location.Kubeconfig == "" {
		return area.Change{}, errors.New("objects on an embedded control plane are not journaled: the plane itself is")
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
		"kubeconfig": c.location.Kubeconfig, "context": c.location.Context, "server": c.location.Server,
		"ca_sha256": c.location.CA,
		"run":       c.run, "resources": strings.Join(words, ","), "kinds": strings.Join(kinds, ","),
		"max_rate": c.limit.Journaled(),
	}}, nil
}

// Undo undoes a Change in any process, any number of times. It refuses when the kubeconfig now refers to another
// server. limit, unless nil, replaces the journal's limit.
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
	o := Options{Run: j.run, Kubeconfig: j.location.Kubeconfig, Context: j.location.Context, Limit: limit, Clock: clk}
	o.ExposeSecrets = true // the run did the same: the location is compared before anything is sent
	c, err := New(ctx, o)
	if err != nil {
		return fmt.Errorf("%w; what is left on %s carries the label %s=%s", err, j.location.Server, OwnerLabel, j.run)
	}
	defer c.Close()
	if c.location != j.location {
		return fmt.Errorf("context %q of %s meant %s when the run began, and now means %s: nothing was removed; what is "+
			"left carries the label %s=%s",
			j.location.Context, j.location.Kubeconfig, j.location.describe(), c.location.describe(), OwnerLabel, j.run)
	}
	if err := c.RemoveAll(ctx, j.resources, j.coming...); err != nil {
		return err
	}
	return c.AwaitGone(ctx, j.coming)
}

// describe names the server so that two with the same URL differ.
func (p Location) describe() string {
	if p.CA == "" {
		return p.Server + " (no authority of its own)"
	}
	return p.Server + " (authority " + p.CA[:min(12, len(p.CA))] + ")"
}

// journaled is a change's data.
type journaled struct {
	location  Location
	run       string
	resources []schema.GroupVersionResource
	coming    []schema.GroupVersionKind // absent in journals of older releases
	rate      float64
}

// parseChange reads a change's data.
func parseChange(data map[string]string) (j journaled, err error) {
	j.location = Location{
		Kubeconfig: data["kubeconfig"], Context: data["context"], Server: data["server"],
		CA: data["ca_sha256"],
	}
	j.run = data["run"]
	if j.location.Kubeconfig == "" || j.location.Context == "" || j.location.Server == "" {
		return j, errors.New("it does not say which cluster it was")
	}
	if err := checkRun(j.run); err != nil {
		return j, err
	}
	if j.rate, err = ratelimit.ParseJournaled(data["max_rate"]); err != nil {
		return j, err
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

// triples parses a comma-separated list of group/version/name. what names the list in errors.
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
