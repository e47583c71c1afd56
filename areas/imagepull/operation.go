package imagepull

import "slices"

// The operations, by the program's names.
const (
	opEmpty        = "empty"
	opEmptyTimed   = "empty-timed"
	opCheck        = "check"
	opCheckCold    = "check-cold"
	opPull         = "pull"
	opNewNamespace = "new-namespace"
	opRestart      = "restart"
	opPrune        = "prune"
)

// An operation is one that the pull manager can be asked for.
type operation struct {
	name string
	help string
	// apart says that each call is timed by itself, since what it writes is undone before the next.
	apart bool
	// acts are the factors that affect this operation and not all others.
	acts []string
}

// offered returns all operations, in the order of the documentation.
func offered() []operation {
	return []operation{
		{
			name: opCheck, acts: []string{factorHits, factorPattern},
			help: "a pod starts: may it use an image that is there already (MustAttemptImagePull)?",
		},
		{name: opCheckCold, help: "the same just after a restart of the kubelet: every check asks for another image"},
		{name: opPull, apart: true, help: "an image is pulled: the intent is written before, the record after " +
			"(RecordPullIntent, RecordImagePulled)"},
		{
			name: opNewNamespace, apart: true, acts: []string{factorPattern},
			help: "a pod of another namespace brings a credential that is known already: the check writes its record anew",
		},
		{name: opRestart, help: "the kubelet starts: all records are listed"},
		{name: opPrune, help: "the garbage collection of images: all records are listed, and none may go " +
			"(PruneUnknownRecords)"},
		{name: opEmpty, help: "nothing: what the harness itself adds to every call; always measured"},
		{name: opEmptyTimed, help: "nothing, with a look at the clocks around each call: what the harness adds to pull " +
			"and new-namespace; always measured with them"},
	}
}

// operations returns the chosen operations in the order of the file, and the harness operations that they need.
func (s *Spec) operations() []string {
	out := slices.Clone(s.Operations)
	if len(out) == 0 {
		out = []string{opCheck}
	}
	need := []string{opEmpty}
	if slices.ContainsFunc(offered(), func(o operation) bool { return o.apart && slices.Contains(out, o.name) }) {
		need = append(need, opEmptyTimed)
	}
	for _, name := range need {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// affected returns the chosen operations that a factor affects, and all that it could affect, if it does not affect
// all.
func (s *Spec) affected(factor string) (chosen, could []string) {
	for _, o := range offered() {
		if slices.Contains(o.acts, factor) {
			could = append(could, o.name)
			if slices.Contains(s.operations(), o.name) {
				chosen = append(chosen, o.name)
			}
		}
	}
	return chosen, could
}

// names returns the operations' names, in order.
func names() []string {
	var out []string
	for _, o := range offered() {
		out = append(out, o.name)
	}
	return out
}
