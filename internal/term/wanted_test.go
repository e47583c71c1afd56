package term

import "testing"

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{map[string]string{"TERM": "xterm-256color"}, true},
		{map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true},
		{map[string]string{"TERM": "xterm", "CI": "true"}, false},
		{map[string]string{"TERM": "dumb"}, false},
		{map[string]string{}, false},
	} {
		if got := isWanted(func(k string) string { return c.env[k] }); got != c.want {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
}
