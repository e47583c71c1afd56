package reference

import (
	"errors"
	"testing"
	"time"

	"tare/areas/decision/model"
	"tare/internal/clock"
)

func TestTargetApplies(t *testing.T) {
	b := &bags{attrPolicyID: {"a", "b"}, attrPolicyType: {"t"}}
	for _, c := range []struct {
		name string
		t    target
		want bool
	}{
		{"empty", nil, true},
		{"one of the bag", target{{{attrPolicyID, "b"}}}, true},
		{"none of the bag", target{{{attrPolicyID, "c"}}}, false},
		{"absent attribute", target{{{attrActor, ""}}}, false},
		{"either", target{{{attrPolicyID, "c"}}, {{attrPolicyType, "t"}}}, true},
		{"both hold", target{{{attrPolicyID, "a"}, {attrPolicyType, "t"}}}, true},
		{"one of both", target{{{attrPolicyID, "a"}, {attrPolicyType, "u"}}}, false},
	} {
		if got := c.t.applies(b); got != c.want {
			t.Errorf("%s: applies is %v, want the opposite", c.name, got)
		}
	}
}

// TestCombiningAlgorithms follows the tables of XACML 3.0, appendix C, for pairs in either order.
func TestCombiningAlgorithms(t *testing.T) {
	const na, p, d, ip, id, idp = notApplicable, permits, denies, indeterminateP, indeterminateD, indeterminateDP
	for _, c := range []struct {
		a, b                         xacmlDecision
		denyWins, permitWins, guards xacmlDecision
	}{
		{na, na, na, na, d},
		{na, p, p, p, p},
		{na, d, d, d, d},
		{na, ip, ip, ip, d},
		{na, id, id, id, d},
		{na, idp, idp, idp, d},
		{p, p, p, p, p},
		{p, d, d, p, p},
		{p, ip, p, p, p},
		{p, id, idp, p, p},
		{p, idp, idp, p, p},
		{d, d, d, d, d},
		{d, ip, d, idp, d},
		{d, id, d, d, d},
		{d, idp, d, idp, d},
		{ip, ip, ip, ip, d},
		{ip, id, idp, idp, d},
		{ip, idp, idp, idp, d},
		{id, id, id, id, d},
		{id, idp, idp, idp, d},
		{idp, idp, idp, idp, d},
	} {
		for _, ds := range [][]xacmlDecision{{c.a, c.b}, {c.b, c.a}} {
			if got := denyOverrides(ds); got != c.denyWins {
				t.Errorf("deny-overrides of %v is %v, want %v", ds, got, c.denyWins)
			}
			if got := permitOverrides(ds); got != c.permitWins {
				t.Errorf("permit-overrides of %v is %v, want %v", ds, got, c.permitWins)
			}
			if got := denyUnlessPermit(ds); got != c.guards {
				t.Errorf("deny-unless-permit of %v is %v, want %v", ds, got, c.guards)
			}
		}
	}
	if got := firstApplicable([]xacmlDecision{na, id, p}); got != id {
		t.Errorf("first-applicable: %v", got)
	}
	if got := firstApplicable(nil); got != na {
		t.Errorf("first-applicable of nothing: %v", got)
	}
}

func TestRuleDecides(t *testing.T) {
	b := &bags{attrActor: {"SO"}}
	yes := func(*bags) (bool, error) { return true, nil }
	no := func(*bags) (bool, error) { return false, nil }
	fails := func(*bags) (bool, error) { return false, errors.New("no") }
	other := target{{{attrActor, "APPC"}}}
	for _, c := range []struct {
		name string
		rule rule
		want xacmlDecision
	}{
		{"without condition", rule{effect: permits}, permits},
		{"holds", rule{effect: denies, condition: yes}, denies},
		{"does not hold", rule{effect: permits, condition: no}, notApplicable},
		{"fails to permit", rule{effect: permits, condition: fails}, indeterminateP},
		{"fails to deny", rule{effect: denies, condition: fails}, indeterminateD},
		{"is about another", rule{effect: permits, target: other, condition: fails}, notApplicable},
	} {
		if got := c.rule.decide(b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func guardOf(actor, name, target, count string) *bags {
	b := &bags{attrActor: {actor}, attrOperation: {name}, attrTarget: {target}}
	if count != "" {
		b[attrVFCount] = []string{count}
	}
	return b
}

func TestGuardPolicies(t *testing.T) {
	a := newGuard(newHistory(clock.NewFake(time.Unix(1.7e9, 0))), true)
	for _, c := range []struct {
		name string
		b    *bags
		want xacmlDecision
	}{
		{"below the least", guardOf("SO", "VF Module Create", model.GuardTarget, "0"), permits},
		{"the least", guardOf("SO", "VF Module Create", model.GuardTarget, "1"), permits},
		{"the most", guardOf("SO", "VF Module Create", model.GuardTarget, "5"), denies},
		{"beyond the most", guardOf("SO", "VF Module Create", model.GuardTarget, "6"), denies},
		{"no count", guardOf("SO", "VF Module Create", model.GuardTarget, ""), denies},
		{"another target", guardOf("SO", "VF Module Create", "other", "1"), notApplicable},
		{"another operation", guardOf("SO", "scaleOut", model.GuardTarget, "1"), notApplicable},
		{"within the limit", guardOf("APPC", "Restart", model.GuardTarget, ""), permits},
		{"over the limit", guardOf("APPC", "Rebuild", model.GuardTarget, ""), denies},
		{"over it on another target", guardOf("APPC", "Rebuild", "vserver-another", ""), denies},
		{"never done on that target", guardOf("APPC", "Rebuild", "new", ""), permits},
		{"unknown target", &bags{attrActor: {"APPC"}, attrOperation: {"Restart"}}, denies},
		{"nothing", &bags{}, notApplicable},
	} {
		if got, _ := a.decide(c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestHistoryIsStableOverADay: the frequency limiters answer the same throughout a day, since nothing enters or leaves
// the window.
func TestHistoryIsStableOverADay(t *testing.T) {
	c := clock.NewFake(time.Unix(1.7e9, 0))
	h := newHistory(c)
	for hour := range 25 {
		within, err := h.count(guardOf(model.FrequencyActor, model.FrequencyWithin, model.GuardTarget, ""), frequencyWindow)
		if err != nil {
			t.Fatal(err)
		}
		over, err := h.count(guardOf(model.FrequencyActor, model.FrequencyOver, model.GuardTarget, ""), frequencyWindow)
		if err != nil {
			t.Fatal(err)
		}
		if within != model.FrequencyLimit-1 || over != model.FrequencyLimit+1 {
			t.Fatalf("hour %d: %d and %d operations, limit %d", hour, within, over, model.FrequencyLimit)
		}
		c.Advance(time.Hour)
	}
	// They are real operations: once they are older than the window, they do not count, and the limiter permits again.
	c.Advance(frequencyWindow)
	if n, err := h.count(guardOf(model.FrequencyActor, model.FrequencyOver, model.GuardTarget, ""),
		frequencyWindow); n != 0 || err != nil {
		t.Errorf("after the window: %d, %v", n, err)
	}
}

func TestHistoryCountsWhatCounts(t *testing.T) {
	now := time.Unix(1.7e9, 0)
	window := time.Hour
	b := guardOf("A", "op", "t", "")
	for _, c := range []struct {
		name string
		row  operation
		want int
	}{
		{"inside", operation{"A", "op", "t", outcomeSuccess, now.Add(-time.Minute)}, 1},
		{"a failure too", operation{"A", "op", "t", outcomeFailure, now.Add(-time.Minute)}, 1},
		{"now", operation{"A", "op", "t", outcomeSuccess, now}, 1},
		{"at the window's beginning", operation{"A", "op", "t", outcomeSuccess, now.Add(-window)}, 1},
		{"before it", operation{"A", "op", "t", outcomeSuccess, now.Add(-window - 1)}, 0},
		{"in the future", operation{"A", "op", "t", outcomeSuccess, now.Add(1)}, 0},
		{"refused by a guard", operation{"A", "op", "t", outcomeFailureGuard, now.Add(-time.Minute)}, 0},
		{"another actor", operation{"B", "op", "t", outcomeSuccess, now.Add(-time.Minute)}, 0},
		{"another operation", operation{"A", "po", "t", outcomeSuccess, now.Add(-time.Minute)}, 0},
		{"another target", operation{"A", "op", "u", outcomeSuccess, now.Add(-time.Minute)}, 0},
	} {
		h := &history{clock: clock.NewFake(now), rows: []operation{c.row}}
		if got, err := h.count(b, window); got != c.want || err != nil {
			t.Errorf("%s: got count %d, %v, want %d", c.name, got, err, c.want)
		}
	}
	if _, err := (&history{clock: clock.NewFake(now)}).count(&bags{attrActor: {"A"}}, window); !errors.Is(err,
		errUnknown) {
		t.Errorf("an operation without a name: %v", err)
	}
}

// TestMonitoringSelectsOne: each monitoring policy is found by its ID, by its type, and by both, always alone.
func TestMonitoringSelectsOne(t *testing.T) {
	const n = 12
	a, err := newMonitoring(n)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n + 1 {
		id, kind := model.Monitoring(i)
		for _, b := range []*bags{
			{attrPolicyID: {id}},
			{attrPolicyType: {kind}},
			{attrPolicyID: {id}, attrPolicyType: {kind}},
		} {
			d, docs := a.decide(b)
			switch {
			case i == n && (d != notApplicable || len(docs) != 0):
				t.Errorf("a policy that is not deployed: %v, %d policies", d, len(docs))
			case i < n && (d != permits || len(docs) != 1 || docs[0].key != `"`+id+`"`):
				t.Errorf("policy %d: %v, %d policies", i, d, len(docs))
			}
		}
	}
	id, _ := model.Monitoring(3)
	_, kind := model.Monitoring(7)
	if d, docs := a.decide(&bags{attrPolicyID: {id}, attrPolicyType: {kind}}); d != permits || len(docs) != 2 {
		t.Errorf("an ID and another's type: %v, %d policies", d, len(docs))
	}
}
