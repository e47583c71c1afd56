package signature

import "strings"

// Supports reports whether a statement of this certainty may be made at all.
func (c Certainty) Supports() bool { return c == Shown || c == Likely }

// Known reports whether the failure has a class.
func (f *Failure) Known() bool { return f.Class != Unknown && f.Class != "" && f.Certainty.Supports() }

// Name names the failure in words: "accept queue"; "" where it has no class.
func (f *Failure) Name() string {
	if !f.Known() {
		return ""
	}
	return strings.ReplaceAll(string(f.Class), "-", " ")
}

// Statement names the failure with its certainty: "accept queue (likely)", "not known from outside".
func (f *Failure) Statement() string {
	if !f.Known() {
		return string(NotKnown)
	}
	return f.Name() + " (" + string(f.Certainty) + ")"
}

// Clause says how the target fails, as surely as it is known: "it likely fails as accept queue".
func (f *Failure) Clause() string {
	switch {
	case !f.Known():
		return "how it fails fits no known class"
	case f.Certainty == Likely:
		return "it likely fails as " + f.Name()
	}
	return "it fails as " + f.Name()
}
