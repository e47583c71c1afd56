package area

// A Check is one capability of this host and the result of trying it, for `tare doctor`.
type Check struct {
	Group string     `json:"group"` // KernelFeatures, Tools, or a heading of the area's own
	Name  string     `json:"name"`
	State CheckState `json:"state"`
	Found string     `json:"found"`
	// Cause and Next say why the check failed, and what to do about it.
	Cause string `json:"cause,omitempty"`
	Next  string `json:"next,omitempty"`
	// Values are the numbers behind Found, in base units.
	Values map[string]float64 `json:"values,omitempty"`
}

// The groups of checks that areas add to.
const (
	KernelFeatures = "kernel features"
	Tools          = "tools"
)

// CheckState judges one capability.
type CheckState string

// The states.
const (
	CheckOK      CheckState = "ok"
	CheckLimited CheckState = "limited" // it works, but not as well as it could
	CheckMissing CheckState = "missing" // experiments that need it cannot run here
	CheckBroken  CheckState = "broken"  // every run needs it: not for areas
	CheckInfo    CheckState = "info"    // neither good nor bad
)
