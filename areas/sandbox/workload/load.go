package workload

import (
	"slices"
	"strconv"
	"strings"
)

// MostConnections is the largest number of connections of a Load.
const MostConnections = 1000

// A Load is a kind of requests to a daemon, and the number of connections on which they are made at the same time.
type Load struct {
	Kind        string // "redis-get"
	Connections int    // 0: one, and the name does not say so
}

// Loads lists the kinds of requests.
func Loads() []string {
	return []string{"apache", "nginx", "redis", "redis-get", "redis-lpop", "redis-set"}
}

// FindLoad parses the name of a kind, or KIND-N for N connections.
func FindLoad(name string) (Load, bool) {
	if slices.Contains(Loads(), name) {
		return Load{Kind: name}, true
	}
	i := strings.LastIndexByte(name, '-')
	if i < 0 || !slices.Contains(Loads(), name[:i]) {
		return Load{}, false
	}
	n, err := strconv.Atoi(name[i+1:])
	l := Load{Kind: name[:i], Connections: n}
	return l, err == nil && n >= 1 && n <= MostConnections && l.Name() == name
}

// Name returns "redis-get", or "redis-get-50".
func (l Load) Name() string {
	if l.Connections == 0 {
		return l.Kind
	}
	return l.Kind + "-" + strconv.Itoa(l.Connections)
}

// Daemon returns the name of the daemon that serves the requests.
func (l Load) Daemon() string {
	name, _, _ := strings.Cut(l.Kind, "-")
	return name
}

// Width returns the number of connections, at least 1.
func (l Load) Width() int { return max(1, l.Connections) }
