package report

// Guard is whether a treatment refused what it must. Rates are in 1/s, times in seconds, shares are of 1.
type Guard struct {
	Treatment string `json:"treatment"`
	// Capacity is the rate that the points are multiples of; absent: it was not measured, or nothing broke.
	Capacity *float64 `json:"capacity,omitempty"`
	// Trespasses are those of all points and conditions together, by operation in Operations.
	Trespasses Trespasses            `json:"trespasses"`
	Operations map[string]Trespasses `json:"operations,omitempty"`
	Points     []GuardPoint          `json:"points"`
	// Reached is the highest rate at which the generator kept up; absent: there is none.
	Reached *float64 `json:"reached,omitempty"`
	// Overload is where the target was overloaded; absent: it was not, as far as is known.
	Overload *GuardOverload `json:"overload,omitempty"`
	// OverloadUnknown says why it is not known whether the target was overloaded at the highest rate that was offered;
	// absent: it is.
	OverloadUnknown string `json:"overload_unknown,omitempty"`
	// TurnedAway is from which rate on calls that it must allow were turned away, without any other sign of an overload;
	// absent: they were not.
	TurnedAway *GuardTurnedAway `json:"turned_away,omitempty"`
	// RatesGiven says that the experiment gives the rates, and so says that they are enough.
	RatesGiven bool `json:"rates_given,omitempty"`
	// Unearned says why this load cannot earn a pass; absent: it can.
	Unearned string `json:"unearned,omitempty"`
	// Foreign are calls that the control must allow, and that it answered with what is somebody else's: breaches, too.
	Foreign uint64 `json:"foreign,omitempty"`
	// Onset is where breaches begin as the rate rises; absent: no trespass was permitted outside of conditions.
	Onset *Onset `json:"onset,omitempty"`
	// InBursts says that breaches outside of conditions came together in time, so that the intervals are too narrow.
	InBursts bool `json:"in_bursts,omitempty"`
	// Stretches is in how many stretches of neighbouring windows of a soak trespasses were permitted, where shares and
	// their intervals are those of so many events; absent: of single trespasses.
	Stretches int `json:"stretches,omitempty"`
	// Breaches are the first that were kept whole.
	Breaches []Breach `json:"breaches,omitempty"`
	// Figures are what the area measured by itself under conditions: "revoke".
	Figures []GuardFigure `json:"figures,omitempty"`
}

// A GuardTurnedAway is the rate from which on calls that the control must allow were turned away, at this and at all
// higher rates, and the most that was not: if a limit before the control did so, no more reached it.
type GuardTurnedAway struct {
	Rate   float64 `json:"rate"`
	AtMost float64 `json:"at_most"` // 1/s
}

// A GuardOverload is the rate from which on the target was degraded, at this and at all higher rates: fewer of the
// calls that it must allow got an answer (being turned away is one), or it was much slower, than at lower rates.
type GuardOverload struct {
	Rate float64 `json:"rate"`
	// ServedShare and Median are of the calls that it must allow at Rate, ServedBelow and MedianBelow at lower rates: all
	// of them, and the fastest. Medians are of the calls that were served, without the generator's own delay.
	ServedShare *Share   `json:"served_share"`
	ServedBelow *Share   `json:"served_below"`
	Median      *float64 `json:"median,omitempty"`
	MedianBelow *float64 `json:"median_below,omitempty"`
	FewerServed bool     `json:"fewer_served,omitempty"`
	Slower      bool     `json:"slower,omitempty"`
	// LeftOut are lower rates at which it was degraded, too, beside other work or for a while: what is said of lower rates
	// is not of these.
	LeftOut []float64 `json:"left_out,omitempty"`
	// Answered are the trespasses at Rate and above, and near it, that were decided or answered with an error.
	Answered uint64 `json:"answered"`
	Decided  uint64 `json:"decided"` // of these
}

// Trespasses are calls that the control must refuse, by how they ended. Undecided ones ended in an error, a timeout or
// another answer, which for unclear ones was no error; unsent ones never left.
type Trespasses struct {
	Refused   uint64 `json:"refused"`
	Permitted uint64 `json:"permitted"`
	Undecided uint64 `json:"undecided"`
	// Unclear are those of Undecided whose answer was no error, and neither a permit nor a refusal.
	Unclear uint64 `json:"unclear,omitempty"`
	// Unanswered are those of Undecided that were sent and got no answer where calls that must be allowed get none at
	// least twice as often: refusals come sooner there than permits, and these may have been permitted.
	Unanswered uint64 `json:"unanswered,omitempty"`
	Unsent     uint64 `json:"unsent,omitempty"`
	// Share is the share of the decided ones that were permitted, with its exact 95 % interval, whose upper end takes the
	// unanswered ones as permitted; absent: none was decided.
	Share *Share `json:"share,omitempty"`
}

// Decided is how many the control decided.
func (t *Trespasses) Decided() uint64 { return t.Refused + t.Permitted }

// Open is how many may have been permitted, of those that were not decided.
func (t *Trespasses) Open() uint64 { return t.Unclear + t.Unanswered }

// offered is how many were due.
func (t *Trespasses) offered() uint64 { return t.Decided() + t.Undecided + t.Unsent }

// A Share is a share with its interval.
type Share struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
}

// A GuardPoint is one stretch of load with trespasses in it.
type GuardPoint struct {
	Name       string     `json:"name,omitempty"`
	Rate       float64    `json:"rate"`
	Factor     *float64   `json:"factor,omitempty"` // of the capacity
	Seconds    float64    `json:"seconds"`
	Refined    bool       `json:"refined,omitempty"` // it narrows the onset down
	Trespasses Trespasses `json:"trespasses"`
	// Of the calls that the control must allow: how many were offered, and ended as expected; got another answer than the
	// expected one; ended in an error or a timeout; never left.
	Offered uint64 `json:"offered"`
	Served  uint64 `json:"served"`
	Wrong   uint64 `json:"wrong"`
	// Foreign are those of Wrong that got what is somebody else's: breaches.
	Foreign uint64 `json:"foreign,omitempty"`
	Failed  uint64 `json:"failed"`
	Unsent  uint64 `json:"unsent,omitempty"`
	// ServedShare is Served ÷ Offered with its exact 95 % interval; absent: no call was offered.
	ServedShare *Share     `json:"served_share,omitempty"`
	Median      *float64   `json:"median,omitempty"` // of those served, without the generator's own delay
	P99         *float64   `json:"p99,omitempty"`    // of all calls
	Generator   *Generator `json:"generator,omitempty"`
	// Causes count the calls that were not served, and the trespasses that were neither refused nor permitted, by what was
	// seen, the most frequent first. Calls that never left are among the unsent only.
	Causes []GuardCause `json:"causes,omitempty"`
	// Condition is what was done to the target meanwhile; absent: nothing.
	Condition *GuardCondition `json:"condition,omitempty"`
	// FirstBreach and LastBreach are since the condition was begun, or the point; absent: none was permitted.
	FirstBreach *float64 `json:"first_breach,omitempty"`
	LastBreach  *float64 `json:"last_breach,omitempty"`
}

// A GuardCause counts calls of an operation.
type GuardCause struct {
	Operation string `json:"operation"`
	Cause
}

// A GuardCondition is what happened to the target. Instants are since the point began.
type GuardCondition struct {
	Name  string   `json:"name"`
	Does  string   `json:"does,omitempty"`
	Begun float64  `json:"begun"`
	Ended *float64 `json:"ended,omitempty"` // absent: it could not be brought about, or not be ended
	Error string   `json:"error,omitempty"`
	// During are the trespasses that were under way while it was in force; what was answered only after its end is
	// undecided among them. Absent: there were none, or it was over in a moment.
	During *Trespasses `json:"during,omitempty"`
	// Afterwards are the trespasses that were due or decided after its end; absent: it did not end.
	Afterwards *Trespasses `json:"afterwards,omitempty"`
	// Recovery is how long after it had ended calls that must be allowed still failed; absent: up to the end of the point.
	Recovery *float64 `json:"recovery,omitempty"`
}

// An Onset is between two offered rates: no trespass was permitted up to Above (absent: some were at the lowest rate),
// and some were at Below.
type Onset struct {
	Above *float64 `json:"above,omitempty"`
	Below float64  `json:"below"`
	// Clear says that none up to Above is no chance, at 95 %, by all that was permitted from Below on, and Sharp by what
	// was at Below alone. Later says that none at some higher rate, or a smaller share than at Below, is no chance either:
	// breaches do not follow the rate alone.
	Clear bool `json:"clear"`
	Sharp bool `json:"sharp,omitempty"`
	Later bool `json:"later,omitempty"`
}

// A Breach is a trespass that was permitted.
type Breach struct {
	Operation   string  `json:"operation"`
	Point       string  `json:"point,omitempty"`
	Rate        float64 `json:"rate,omitempty"` // that was offered then
	At          float64 `json:"at"`             // since the condition was begun, or the point, or the load of a soak
	Status      int     `json:"status,omitempty"`
	Request     string  `json:"request,omitempty"`
	Answer      string  `json:"answer,omitempty"`
	AnswerBytes int     `json:"answer_bytes,omitempty"`
	InFlight    int     `json:"in_flight"`
	Waiting     int     `json:"waiting,omitempty"`
	// Again is the outcome of the same trespass asked alone, without other load: "permitted": it does not
	// need the load; "denied": it may need it, or be rare; absent: it was not asked again.
	Again string `json:"again,omitempty"`
}

// A GuardFigure sums up what an area measured under a condition.
type GuardFigure struct {
	Condition string `json:"condition"`
	Metric    string `json:"metric"`
	// Values are of the times after which each was seen to be granted last.
	Values *Distribution `json:"values"`
	// Unended are those of Values that were still granted when they were asked for last: of their time only a lower bound
	// is known. Absent: none.
	Unended uint64 `json:"unended,omitempty"`
}
