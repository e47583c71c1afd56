package apimetrics

import (
	"slices"
	"strings"

	"tare/area"
)

// distributions are the histograms of requests by kind.
type distributions map[requestKey]*distribution

type requestKey struct{ verb, resource, scope string }

// distribution is the histogram of requests of one kind.
type distribution struct {
	count, dryRuns uint64
	seconds        float64
	buckets        []area.ServedBucket // by LE
}

// add adds a line of a histogram of requests.
func (d distributions) add(l *line) error {
	key := requestKey{l.label("verb"), l.label("resource"), l.label("scope")}
	sub := l.label("subresource")
	if l.suffix == none || key.resource == "" || isLongRunning(key.verb, sub) {
		return nil
	}
	if sub != "" {
		key.resource += "/" + sub
	}
	x := d[key]
	if x == nil {
		if len(d) >= mostRows {
			return errRows
		}
		x = &distribution{}
		d[key] = x
	}
	return x.add(l)
}

func (x *distribution) add(l *line) error {
	if l.suffix == sum {
		s, err := l.number()
		x.seconds += s
		return err
	}
	n, err := l.count()
	switch {
	case err != nil:
		return err
	case l.suffix == count:
		x.count += n
		if l.label("dry_run") != "" {
			x.dryRuns += n
		}
	case l.suffix == bucket && l.label("le") != "+Inf":
		le, err := parseNumber(l.label("le"))
		if err != nil {
			return err
		}
		return x.bucket(le, n)
	}
	return nil
}

// mostBuckets bounds the buckets of a histogram. kube-apiserver has 23.
const mostBuckets = 1 << 10

// bucket adds to a bucket. Buckets come in order.
func (x *distribution) bucket(le float64, n uint64) error {
	i, found := slices.BinarySearchFunc(x.buckets, le, func(b area.ServedBucket, le float64) int {
		switch {
		case b.LE < le:
			return -1
		case b.LE > le:
			return 1
		}
		return 0
	})
	if found {
		x.buckets[i].Count += n
		return nil
	}
	if len(x.buckets) >= mostBuckets {
		return errRows
	}
	x.buckets = slices.Insert(x.buckets, i, area.ServedBucket{LE: le, Count: n})
	return nil
}

// isLongRunning reports whether the client decides how long a request lasts, as kube-apiserver's own check of
// long-running requests does.
func isLongRunning(verb, subresource string) bool {
	switch verb {
	case "WATCH", "WATCHLIST", "CONNECT", "PROXY":
		return true
	}
	switch subresource {
	case "attach", "exec", "log", "portforward", "proxy":
		return true
	}
	return false
}

// storedResource returns the resource of a sample of the storage. Before 1.29 the sample has a Go type, "*core.Pod" or
// "*[]core.Pod", or, for listings, a key, "/registry/pods/".
func storedResource(l *line) string {
	if r := l.label("resource"); r != "" {
		return r
	}
	t := l.label("type")
	if strings.HasPrefix(t, "/") {
		return resourceOfKey(strings.Trim(t, "/"))
	}
	return plural(strings.ToLower(t[strings.LastIndexByte(t, '.')+1:]))
}

// resourceOfKey returns the resource that is stored under a key. Some keys have kept an old name
// (kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go).
func resourceOfKey(key string) string {
	switch {
	case strings.HasSuffix(key, "/services/specs"):
		return "services"
	case strings.HasSuffix(key, "/services/endpoints"):
		return "endpoints"
	}
	switch last := key[strings.LastIndexByte(key, '/')+1:]; last {
	case "minions":
		return "nodes"
	case "controllers":
		return "replicationcontrollers"
	case "ingress", "podsecuritypolicy":
		return plural(last)
	default:
		return last
	}
}

// plural returns the resource of a kind in lower case, as k8s.io/apimachinery's meta.UnsafeGuessKindToResource does.
func plural(kind string) string {
	switch {
	case kind == "" || kind == "endpoints":
		return kind
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	case strings.HasSuffix(kind, "y"):
		return kind[:len(kind)-1] + "ies"
	}
	return kind + "s"
}
