package decision

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/rigs/hosttest"
)

// TestRegoIsCompiled: before a run begins, what OPA would not load is shown with its place in the user's file.
func TestRegoIsCompiled(t *testing.T) {
	hosttest.SkipIfShort(t)
	env := testEnv(t)
	env.Getenv, env.Treatments = os.LookupEnv, []area.Treatment{standard}
	launch := requireEngine(t, engine.OPA, env)
	if filepath.Base(launch.Path) == filepath.Base(env.Self) {
		hosttest.Missing(t, "OPA is one of PATH, which compiles nothing before it starts", "take it out of PATH")
	}
	at := func(text string) string { return written(t, map[string]string{"authz/policy.rego": text}) }
	const head = "package httpapi.authz\n\nimport rego.v1\n\n"
	for name, c := range map[string]struct {
		bundle string
		v0     bool
		want   []string // in the finding; empty: no finding is wanted
	}{
		"fine":            {bundle: at(salaries)},
		"an archive":      {bundle: archived(t, map[string]string{"policy.rego": salaries, "data.json": managers})},
		"Rego before 1.0": {bundle: at("package httpapi.authz\nallow { input.user == \"bob\" }\n"), v0: true},
		"not said to be of before 1.0": {
			bundle: at("package httpapi.authz\nallow { input.user == \"bob\" }\n"),
			want:   []string{"policy.rego:2:1: rego_parse_error: `if` keyword is required", "    2 | allow { input.user"},
		},
		"a mistake": {bundle: at(head + "allow if {\n\tinput.x = = 1\n}\n"), want: []string{
			"policy.rego:6:12: rego_parse_error: ", "    6 | \tinput.x = = 1\n        \t          ^",
		}},
		"a variable that nothing binds": {bundle: at(head + "allow if { x }\n"), want: []string{
			"policy.rego:5:12: rego_unsafe_var_error: var x is unsafe", "    5 | allow if { x }\n                   ^",
		}},
		"a function that there is not": {
			bundle: at(head + "allow if { startwith(input.a, \"b\") }\n"),
			want:   []string{"policy.rego:5:12: rego_type_error: undefined function startwith"},
		},
		"two mistakes": {bundle: at(head + "allow if { x }\ndeny if { y }\n"), want: []string{
			"policy.rego:5:12: rego_unsafe_var_error", "policy.rego:6:11: rego_unsafe_var_error",
		}},
		"in an archive": {
			bundle: archived(t, map[string]string{"policy.rego": head + "allow if { x }\n"}),
			want:   []string{"policy.rego:5:12: rego_unsafe_var_error"},
		},
		"data that is no JSON": {
			bundle: written(t, map[string]string{"policy.rego": salaries, "data.json": "{"}),
			want:   []string{"data.json"},
		},
		"no archive": {bundle: filepath.Join(written(t, map[string]string{"b.tar.gz": "x"}), "b.tar.gz"), want: []string{
			"b.tar.gz",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ownSpec(engine.OPA, c.bundle)
			spec.Embedded.RegoV0 = c.v0
			findings := Area{}.Preflight(t.Context(), spec, env)
			var said []string
			for _, f := range findings {
				said = append(said, f.Message)
			}
			if (len(said) > 0) != (len(c.want) > 0) {
				t.Fatalf("%q", said)
			}
			for _, want := range c.want {
				if text := strings.Join(said, "\n"); !strings.Contains(text, want) {
					t.Errorf("%s\nlacks %q", text, want)
				}
			}
		})
	}
}

// TestRulesAreProved: a rule of a bundle for OPA is true for a request, or in a test of the bundle's own, or is named.
func TestRulesAreProved(t *testing.T) {
	hosttest.SkipIfShort(t)
	env := testEnv(t)
	env.Getenv = os.LookupEnv
	if launch := requireEngine(t, engine.OPA, env); !launch.CanProve() {
		hosttest.Missing(t, "OPA is one of PATH, which is not asked", "take it out of PATH")
	}
	const more = `
allow if is_boss
is_boss if input.user in data.bosses
else if { input.user == "root" }
calls if http.send({"method": "GET", "url": "http://127.0.0.1:1/"}).status_code == 200
`
	const tests = `package httpapi.authz_test
import rego.v1
import data.httpapi.authz
test_boss if authz.allow with input as {"user": "eve"}
test_wrong if not authz.allow with input as {"user": "eve"}
test_calls if authz.calls
helper if authz.calls
todo_test_later if false
`
	dir := map[string]string{
		"a/policy.rego": salaries + more, "a/policy_test.rego": tests,
		"data.json": strings.Replace(managers, "{", `{"bosses": ["eve"], `, 1),
	}
	for name, bundle := range map[string]string{"a folder": written(t, dir), "an archive": archived(t, dir)} {
		t.Run(name, func(t *testing.T) {
			tg, j := opened(t, ownSpec(engine.OPA, bundle), env)
			if err := tg.Prepare(t.Context(), standard, j); err != nil {
				t.Fatal(err)
			}
			server, _ := tg.arm(standard.ID).latest()
			var most unix.Rlimit
			if err := unix.Prlimit(server.PID, unix.RLIMIT_DATA, nil, &most); err != nil || most.Max < engine.ServeWith ||
				most.Max > engine.ServeWith+1<<20 {
				t.Errorf("the server may take %d bytes of memory: %v", most.Max, err)
			}
			notes := strings.ReplaceAll(strings.Join(append(tg.Warnings(), tg.Notes()...), "\n"), bundle, "BUNDLE")
			for _, want := range []string{
				"BUNDLE: of 5 rules, defaults aside, 1 was true for a request of the experiment",
				"BUNDLE: 2 rules were true for no request, but in one of the bundle's own tests, so that what they cost where " +
					"they are true is not in these numbers: httpapi.authz.allow (a/policy.rego:13), " +
					"httpapi.authz.is_boss (a/policy.rego:14)",
				"BUNDLE: 2 rules without a proof: they were true for no request, and not seen to be in a test of the " +
					"bundle's own; whether they guard is not shown: httpapi.authz.is_boss (a/policy.rego:15), " +
					"httpapi.authz.calls (a/policy.rego:16)",
				"BUNDLE: of 3 tests of its own, run without a network, 2 failed: httpapi.authz_test.test_wrong " +
					"(a/policy_test.rego:5), httpapi.authz_test.test_calls (a/policy_test.rego:6)",
			} {
				if !strings.Contains(notes, want) {
					t.Errorf("notes lack %q:\n%s", want, notes)
				}
			}
		})
	}
}

// TestHungryRegoIsBounded: a few rules, or a test of a bundle's own, may not take what memory this host has.
func TestHungryRegoIsBounded(t *testing.T) {
	hosttest.SkipIfShort(t)
	env := testEnv(t)
	env.Getenv = os.LookupEnv
	launch := requireEngine(t, engine.OPA, env)
	if !launch.CanProve() {
		hosttest.Missing(t, "OPA is one of PATH, which is not asked", "take it out of PATH")
	}
	const hungry = ` if {
	a := "aaaaaaaaaa"
	b := replace(a, "a", a)
	c := replace(b, "a", b)
	d := replace(c, "a", c)
	contains(replace(d, "a", b), "b")
}
`
	for name, files := range map[string]map[string]string{
		"a rule": {"policy.rego": salaries + "allow" + hungry},
		"a test": {"policy.rego": salaries, "policy_test.rego": "package t\nimport rego.v1\ntest_a" + hungry},
	} {
		c := engine.Config{File: written(t, files), Own: true, Path: "/v1/data/httpapi/authz/allow"}
		_, err := launch.Prove(t.Context(), c, []json.RawMessage{[]byte(`{"input": {}}`)})
		const want = "its rules or tests take more than 1024 MiB of memory"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
