package protocol

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"tare/areas/decision/model"
)

// PDPX are the options of pdpx. Empty ones have the values of the published test.
type PDPX struct {
	ONAPName      string `yaml:"onap_name,omitempty" json:"onap_name,omitempty" jsonschema_description:"ONAPName of guard requests. Default Policy."`
	ONAPComponent string `yaml:"onap_component,omitempty" json:"onap_component,omitempty" jsonschema_description:"ONAPComponent of guard requests. Default drools-pdp."`
	ONAPInstance  string `yaml:"onap_instance,omitempty" json:"onap_instance,omitempty" jsonschema_description:"ONAPInstance of guard requests. Default usecase-template."`
	PolicyID      string `yaml:"policy_id,omitempty" json:"policy_id,omitempty" jsonschema_description:"The monitoring policy that is asked for. Default onap.restart.tca."`
	PolicyType    string `yaml:"policy_type,omitempty" json:"policy_type,omitempty" jsonschema_description:"Its policy type, instead of its ID."`
	Actor         string `yaml:"actor,omitempty" json:"actor,omitempty" jsonschema_description:"Actor of guard requests. Default SO."`
	ControlLoop   string `yaml:"clname,omitempty" json:"clname,omitempty" jsonschema_description:"Control loop (clname) of guard requests: the id that a guard policy may name. Default that of the published test."`
	Operation     string `yaml:"operation,omitempty" json:"operation,omitempty" jsonschema_description:"Operation for which a min/max guard policy is deployed."`
	Frequency     string `yaml:"frequency,omitempty" json:"frequency,omitempty" jsonschema_description:"Operation for which a frequency-limiter guard policy is deployed."`
	Target        string `yaml:"target,omitempty" json:"target,omitempty" jsonschema_description:"Target of guard requests."`
	Permits       *int   `yaml:"permits,omitempty" json:"permits,omitempty" jsonschema:"minimum=0" jsonschema_description:"A vfCount that the min/max policy permits: less than its max. Default 1."`
	Denies        *int   `yaml:"denies,omitempty" json:"denies,omitempty" jsonschema:"minimum=0" jsonschema_description:"A vfCount that the min/max policy denies: its max, or more. Default 6."`
	FrequencyWant string `yaml:"frequency_want,omitempty" json:"frequency_want,omitempty" jsonschema:"enum=permit,enum=deny" jsonschema_description:"What the frequency limiter answers throughout the run, by the history that it looks at."`
	FrequencyOver string `yaml:"frequency_over,omitempty" json:"frequency_over,omitempty" jsonschema_description:"Operation that is over the limit of its frequency limiter: the known deny. Default frequency, with frequency_over_target."`
	OverTarget    string `yaml:"frequency_over_target,omitempty" json:"frequency_over_target,omitempty" jsonschema_description:"Target at which that operation is over its limit. Default target."`
	Recipe        bool   `yaml:"recipe,omitempty" json:"recipe,omitempty" jsonschema_description:"Say recipe where current releases say operation."`
	XACML         bool   `yaml:"xacml,omitempty" json:"xacml,omitempty" jsonschema_description:"Also ask over POST xacml."`
	// Operations leaves out what the decision point has no policies for.
	Operations []string `yaml:"operations,omitempty" json:"operations,omitempty" jsonschema:"minItems=1" jsonschema_description:"Operations to ask, of healthcheck, statistics, monitoring, guard-minmax, guard-frequency, and the known refusals that go with them. Default all: name those for which policies are deployed. The load's own operations choose among these."`
}

func (o PDPX) permits() int {
	if o.Permits == nil {
		return model.MinMaxLeast
	}
	return *o.Permits
}

func (o PDPX) denies() int {
	if o.Denies == nil {
		return model.MinMaxMost + 1
	}
	return *o.Denies
}

// limited is what a frequency limiter counts. An empty target is that of all guard requests.
type limited struct{ operation, target string }

// limited returns what is within the limit of its frequency limiter, and what is over it; empty: nobody says.
func (o PDPX) limited() (within, over limited) {
	if o.Frequency == "" {
		return limited{operation: model.FrequencyWithin}, limited{cmp.Or(o.FrequencyOver, model.FrequencyOver), o.OverTarget}
	}
	within = limited{operation: o.Frequency}
	if o.FrequencyOver != "" || o.OverTarget != "" {
		over = limited{cmp.Or(o.FrequencyOver, o.Frequency), o.OverTarget}
	}
	return within, over
}

// asks reports whether an operation is asked.
func (o PDPX) asks(name string) bool {
	return len(o.Operations) == 0 || slices.Contains(o.Operations, name)
}

// validPDPX says what is wrong with the options.
func validPDPX(o Options) error {
	x, _ := sectionOf[PDPX](o)
	if err := x.valid(); err != nil {
		return fmt.Errorf("pdpx.%w", err)
	}
	return nil
}

func (o PDPX) valid() error {
	switch {
	case o.FrequencyWant != "" && o.FrequencyWant != model.Permit.String() && o.FrequencyWant != model.Deny.String():
		return fmt.Errorf("frequency_want: %q is neither permit nor deny", o.FrequencyWant)
	case o.permits() < 0:
		return fmt.Errorf("permits: %d is no number of instances", o.permits())
	case o.denies() < 0:
		return fmt.Errorf("denies: %d is no number of instances", o.denies())
	case o.permits() == o.denies():
		return fmt.Errorf("denies: a min/max policy that permits %d cannot deny it", o.permits())
	case o.Frequency != "" && o.asks(pdpxFrequency):
		return o.limiterCanBeSeen()
	}
	return nil
}

// UnseenLimiter returns the operation whose own frequency limiter is asked and never seen to refuse, since the known
// refusal is another operation's; empty: there is none.
func (o PDPX) UnseenLimiter() string {
	_, over := o.limited()
	if o.Frequency == "" || over.operation == o.Frequency || !o.asks(pdpxFrequency) ||
		o.FrequencyWant == model.Deny.String() {
		return ""
	}
	return o.Frequency
}

// limiterCanBeSeen wants a refusal that is the frequency limiter's own. Another policy about the same operation permits
// what the limiter permits, and a limiter whose database is down permits all, and counts Permit.
func (o PDPX) limiterCanBeSeen() error {
	const next = ", or leave guard-frequency out of operations"
	shared := o.Frequency == cmp.Or(o.Operation, model.MinMaxOperation)
	within, over := o.limited()
	over.target = cmp.Or(over.target, o.Target)
	within.target = o.Target
	switch {
	case o.FrequencyWant == model.Deny.String() && shared:
		return fmt.Errorf("frequency_want: the min/max policy is about %q too, so that it is not known which of both "+
			"denies: name a limiter of another operation%s", o.Frequency, next)
	case o.FrequencyWant == model.Deny.String():
		return nil // it is refused throughout
	case over.operation == "":
		return errors.New("frequency_over: a frequency limiter that is never seen to refuse may not be there, or not know " +
			"its history: name an operation that is over its limit, or in frequency_over_target a target at which this one " +
			"is" + next)
	case over == within:
		return fmt.Errorf("frequency_over: %q cannot be within its limit and over it at the same target: name another one "+
			"in frequency_over_target%s", o.Frequency, next)
	case shared && over.operation != o.Frequency:
		return fmt.Errorf("frequency_over: the min/max policy is about %q too, so that its Permit does not show that there "+
			"is a limiter: name in frequency_over_target a target at which %[1]q itself is over its limit%s", o.Frequency, next)
	}
	return nil
}
