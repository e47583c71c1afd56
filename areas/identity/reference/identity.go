package reference

import (
	"net/netip"
	"strings"
)

const (
	// Project is the made-up cloud project of the reference.
	Project = "tare-reference"
	// Pool is its workload-identity pool. Any pool "<name>.svc.id.goog" may exchange tokens and has a quota of its own.
	Pool = Project + ".svc.id.goog"

	poolSuffix   = ".svc.id.goog"
	clusterURL   = "https://container.googleapis.com/v1/projects/" + Project + "/locations/local/clusters/reference"
	emailDomain  = "@" + Project + ".iam.gserviceaccount.com"
	subjectStart = "system:serviceaccount:default:"
	platform     = "https://www.googleapis.com/auth/cloud-platform"
)

// A Workload is who a caller is.
type Workload struct {
	Account string // the Kubernetes service account: "ksa-127-1-0-3"
	Email   string // the service account that it may act as: "gsa-127-1-0-3@…"
}

// WorkloadOf returns the identity of the caller at addr: in a cluster, the pod with this address.
func WorkloadOf(addr netip.Addr) Workload {
	name := strings.NewReplacer(".", "-", ":", "-").Replace(addr.Unmap().WithZone("").String())
	return Workload{Account: "ksa-" + name, Email: "gsa-" + name + emailDomain}
}

// Subject returns the workload's name in service-account JWTs.
func (w Workload) Subject() string { return subjectStart + w.Account }

// mayActAs is the policy of the reference: the account ksa-x may act as gsa-x, and as nobody else.
func mayActAs(subject, email string) bool {
	name, ok := strings.CutPrefix(subject, subjectStart+"ksa-")
	return ok && email == "gsa-"+name+emailDomain
}

// audience returns the audience parameter of an exchange in pool.
func audience(pool string) string { return "identitynamespace:" + pool + ":" + clusterURL }

// poolOf returns the reverse of audience; ok is false when a is no such audience.
func poolOf(a string) (pool string, ok bool) {
	pool, ok = strings.CutPrefix(a, "identitynamespace:")
	if !ok {
		return "", false
	}
	pool, ok = strings.CutSuffix(pool, ":"+clusterURL)
	return pool, ok && strings.HasSuffix(pool, poolSuffix) && !strings.ContainsAny(pool, ": /")
}
