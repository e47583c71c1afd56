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
)

// ChangeKind is the kind of changes that are objects on a cluster.
const ChangeKind = "objects"

// Change is what is about to be created, for the journal: all objects of this run of these resources. id is unique within the run. The data holds
// paths and names, never a credential. A control plane of our own, which ends as a whole, has none.
func (c *Cluster) Change(areaName, id string, resources []schema.GroupVersionResource) (area.Change, error) {
	if c.place.Kubeconfig == "" {
		return area.Change{}, errors.New("objects on a control plane of our own are not journaled: the plane is")
	}
	words := make([]string, len(resources))
	for i, r := range resources {
		words[i] = r.Group + "/" + r.Version + "/" + r.Resource
	}
	return area.Change{Area: areaName, Kind: ChangeKind, ID: id, Data: map[string]string{
		"kubeconfig": c.place.Kubeconfig, "context": c.place.Context, "server": c.place.Server, "ca_sha256": c.place.CA,
		"run": c.run, "resources": strings.Join(words, ","), "max_rate": strconv.FormatFloat(c.pace.rate, 'g', -1, 64),
	}}, nil
}

// Undo takes back a Change in any process, any number of times. It refuses when the kubeconfig now means another server. maxRate > 0 stands in place
// of the journal's.
func Undo(ctx context.Context, change area.Change, maxRate float64, clk clock.Clock) error {
	place, run, resources, rate, err := parseChange(change.Data)
	if err != nil {
		return fmt.Errorf("the journal: %w", err)
	}
	if maxRate > 0 {
		rate = maxRate
	}
	c, err := New(ctx, Options{Run: run, Kubeconfig: place.Kubeconfig, Context: place.Context, MaxRate: rate, Clock: clk})
	if err != nil {
		return fmt.Errorf("%w; what is left on %s carries the label %s=%s", err, place.Server, OwnerLabel, run)
	}
	defer c.Close()
	if c.place != place {
		return fmt.Errorf("context %q of %s meant %s when the run began, and now means %s: nothing was removed; what is left carries the label %s=%s",
			place.Context, place.Kubeconfig, place.describe(), c.place.describe(), OwnerLabel, run)
	}
	return c.RemoveAll(ctx, resources)
}

// describe names the server so that two with one URL can be told apart.
func (p Place) describe() string {
	if p.CA == "" {
		return p.Server + " (no authority of its own)"
	}
	return p.Server + " (authority " + p.CA[:min(12, len(p.CA))] + ")"
}

// parseChange reads a change's data.
func parseChange(data map[string]string) (place Place, run string, resources []schema.GroupVersionResource, rate float64, err error) {
	place = Place{Kubeconfig: data["kubeconfig"], Context: data["context"], Server: data["server"], CA: data["ca_sha256"]}
	run = data["run"]
	if place.Kubeconfig == "" || place.Context == "" || place.Server == "" {
		return place, run, nil, 0, errors.New("it does not say which cluster it was")
	}
	if err := checkRun(run); err != nil {
		return place, run, nil, 0, err
	}
	if rate, err = strconv.ParseFloat(data["max_rate"], 64); err != nil || rate < 0 || rate != rate {
		return place, run, nil, 0, fmt.Errorf("max_rate %q is no rate", data["max_rate"])
	}
	for word := range strings.SplitSeq(data["resources"], ",") {
		part := strings.Split(word, "/")
		if len(part) != 3 || part[1] == "" || part[2] == "" {
			return place, run, nil, 0, fmt.Errorf("%q is no group/version/resource", word)
		}
		resources = append(resources, schema.GroupVersionResource{Group: part[0], Version: part[1], Resource: part[2]})
	}
	return place, run, resources, rate, nil
}
