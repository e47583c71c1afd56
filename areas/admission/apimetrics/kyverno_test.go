package apimetrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKyverno: only what was evaluated to its end and not met is an objection, and only a change that was made is one;
// all of it was evaluated. What happens in other namespaces, and to events, is not counted.
func TestKyverno(t *testing.T) {
	const text = `# TYPE kyverno_policy_results_total counter
kyverno_policy_results_total{resource_namespace="n",dry_run="true",policy_name="a",rule_name="one",rule_result="fail"} 3
kyverno_policy_results_total{resource_namespace="n",dry_run="true",policy_name="a",rule_name="two",rule_result="fail"} 2
kyverno_policy_results_total{resource_namespace="n",policy_name="a",rule_name="two",rule_result="pass"} 40
kyverno_policy_results_total{resource_namespace="n",policy_name="b",rule_name="one",rule_result="error"} 7
kyverno_policy_execution_duration_seconds_count{policy_name="b",rule_result="fail"} 9
kyverno_validating_policy_results_total{resource_namespace="n",policy_name="c",result="fail"} 1
kyverno_validating_policy_results_total{resource_namespace="n",policy_name="d",result="pass"} 1
kyverno_validating_policy_results_total{resource_namespace="n",resource_kind="Event",policy_name="d",result="fail"} 1
kyverno_validating_policy_results_total{resource_namespace="",policy_name="d",result="fail"} 1
kyverno_policy_results_total{resource_namespace="other",policy_name="d",rule_result="fail"} 1
kyverno_policy_results_total{resource_namespace="n",policy_name="e",rule_type="mutate",rule_result="pass"} 6
kyverno_policy_results_total{resource_namespace="n",policy_name="f",rule_type="mutate",rule_result="fail"} 1
kyverno_policy_results_total{resource_namespace="n",policy_name="f",rule_type="mutate",rule_result="skip"} 1
kyverno_mutating_policy_results_total{resource_namespace="n",policy_name="g",result="pass"} 2
kyverno_mutating_policy_results_total{resource_namespace="n",policy_name="h",result="skip"} 2
kyverno_mutating_policy_results_total{resource_namespace="other",policy_name="h",result="pass"} 2
`
	want := KyvernoCounts{
		Objected: map[string]uint64{"a": 5, "c": 1}, Changed: map[string]uint64{"e": 6, "g": 2}, Evaluated: 66,
	}
	got, err := Kyverno([]byte(text), "n")
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v; (-want +got):\n%s", err, d)
	}
	if _, err := Kyverno([]byte("kyverno_policy_results_total{rule_result=\"fail\"} x\n"), ""); err == nil {
		t.Error("a count that is no number was read")
	}
}
