package signature

import (
	"strings"
	"testing"
)

// A throttle inside the target's process is no control group's.
func TestThrottledTextNamesNoCgroup(t *testing.T) {
	if got := throttledText(0.714); strings.Contains(got, "cgroup") || !strings.Contains(got, "71 % of its periods") {
		t.Error(got)
	}
}
