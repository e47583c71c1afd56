package apimetrics

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKyvernoObjections: only what was evaluated to its end and not met is an objection; all of it was evaluated. What
// happens in other namespaces, and to events, is neither.
func TestKyvernoObjections(t *testing.T) {
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
`
	got, evaluated, err := KyvernoObjections([]byte(text), "n")
	if d := cmp.Diff(map[string]uint64{"a": 5, "c": 1}, got); d != "" || evaluated != 54 || err != nil {
		t.Errorf("%d evaluated, %v; objections (-want +got):\n%s", evaluated, err, d)
	}
	if _, _, err := KyvernoObjections([]byte("kyverno_policy_results_total{rule_result=\"fail\"} x\n"), ""); err == nil {
		t.Error("a count that is no number was read")
	}
}
