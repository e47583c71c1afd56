package apparmor

import (
	"testing"

	"tare/areas/sandbox/policy"
)

func TestParseRecord(t *testing.T) {
	const head = `audit(1700000000.123:45): `
	for _, c := range []struct {
		record, namespace, text string
		enforced                bool
	}{
		{`apparmor="ALLOWED" operation="open" class="file" namespace="root//tare-x" profile="p" name="/etc/x" pid=12 ` +
			`comm="sh" requested_mask="r" denied_mask="r" fsuid=0 ouid=0`, "tare-x", "open /etc/x (r)", false},
		{`apparmor="DENIED" operation="open" namespace="root//tare-x" profile="p" name=2F612062 pid=12 comm="sh" ` +
			`requested_mask="wc" denied_mask="wc" fsuid=0 ouid=0`, "tare-x", "open /a b (wc)", true},
		{`apparmor="ALLOWED" operation="capable" namespace="root//tare-x" profile="p" pid=12 comm="sh" capability=12  ` +
			`capname="net_admin"`, "tare-x", "capable net_admin", false},
		{`apparmor="ALLOWED" operation="create" profile="p" pid=12 comm="sh" family="inet" sock_type="stream" protocol=0 ` +
			`requested_mask="create" denied_mask="create"`, "", "create inet stream (create)", false},
		{`apparmor="ALLOWED" operation="signal" profile="p" pid=1 comm="sh" requested_mask="send" denied_mask="send" ` +
			`signal=term peer="unconfined"`, "", "signal term unconfined (send)", false},
		{`apparmor="ALLOWED" operation="open" info="Failed name lookup - disconnected path" error=-13 profile="p" ` +
			`name="x" pid=1 comm=61`, "", "open x [Failed name lookup - disconnected path]", false},
	} {
		r, namespace, ok := parseRecord(head + c.record + "\n\x00")
		if !ok || namespace != c.namespace || r.String() != c.text || r.Enforced != c.enforced || r.Profile != "p" {
			t.Errorf("%s:\ngot %+v, %q, %t, %t", c.record, r, r.String(), r.Enforced, ok)
		}
	}
	for _, other := range []string{"", `apparmor="STATUS" operation="profile_load"`, `avc:  denied  { read }`} {
		if r, _, ok := parseRecord(head + other); ok {
			t.Errorf("%q is no refusal, and gave %+v", other, r)
		}
	}
}

// TestRefusalsAreActs: what rules can refuse is told in terms of rules.
func TestRefusalsAreActs(t *testing.T) {
	for record, want := range map[string]policy.Act{
		`operation="open" name="/etc/x" denied_mask="r"`: {Path: "/etc/x", Access: []policy.Access{policy.Read}},
		`operation="mknod" name="/a" denied_mask="c"`:    {Path: "/a", Access: []policy.Access{policy.Write}},
		`operation="exec" name="/bin/x" denied_mask="x"`: {Kind: policy.Execute, Path: "/bin/x"},
		`operation="capable" capname="syslog"`:           {Kind: policy.UseCapability, Name: "syslog"},
		`operation="mount" name="/mnt/" fstype="tmpfs" srcname="none"`: {
			Kind: policy.MountIt, Path: "none", Name: "tmpfs",
		},
		`operation="umount" name="/mnt/"`:                    {Kind: policy.Unmount, Path: "/mnt/"},
		`operation="ptrace" denied_mask="read" peer="other"`: {Kind: policy.Trace},
	} {
		r, _, ok := parseRecord(`apparmor="ALLOWED" profile="p" ` + record)
		if a, isAct := r.Act(); !ok || !isAct || !a.Same(want) {
			t.Errorf("%s: %+v, %t", record, a, isAct)
		}
	}
	if a, ok := (Refusal{Operation: "create", Denied: "create"}).Act(); ok {
		t.Errorf("a socket: %+v", a)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add(`audit(1.2:3): apparmor="ALLOWED" operation="open" namespace="root//tare-x" profile=2F61 name="/a" pid=1`)
	f.Add(`apparmor="DENIED" name="`)
	f.Add("=== \x00 a= b")
	f.Fuzz(func(t *testing.T, text string) {
		r, namespace, ok := parseRecord(text)
		if !ok && (namespace != "" || r != Refusal{}) {
			t.Errorf("%q: no refusal, and yet %+v of %q", text, r, namespace)
		}
		_ = r.String()
	})
}

func TestObservedMakesDenyRulesReported(t *testing.T) {
	f := File{Text: "# deny this\nprofile deny {\n  deny /a r,deny \"/b deny \" w,\n  audit deny /c r,\n" +
		"\tdeny capability,\n}\n"}
	const want = "# deny this\nprofile deny {\n  audit deny /a r,audit deny \"/b deny \" w,\n  audit deny /c r,\n" +
		"\taudit deny capability,\n}\n"
	if got := f.Observed().Text; got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestParseLabel(t *testing.T) {
	for text, want := range map[string]Label{
		"unconfined\n":                  {Profile: "unconfined"},
		":tare-x://p (enforce)\n":       {Namespace: "tare-x", Profile: "p", Mode: "enforce"},
		"/usr/bin/man (complain)\n\x00": {Profile: "/usr/bin/man", Mode: "complain"},
		"a//b (c) (enforce)":            {Profile: "a//b (c)", Mode: "enforce"},
		"":                              {},
	} {
		if got := parseLabel(text); got != want {
			t.Errorf("%q: got %+v", text, got)
		}
	}
	if l := (Label{"n", "p", "complain"}); l.String() != ":n://p (complain)" {
		t.Errorf("got %s", l)
	}
}

func TestNamespaceNames(t *testing.T) {
	for _, name := range []string{
		"", "tare", "tare-", "docker", "tare-a/..", "tare-..", "tare-a b", "../tare-a", "tare-a\n",
	} {
		if Remove(name) == nil || Enter(Label{Namespace: name, Profile: "p"}) == nil || Enter(Label{Profile: name}) == nil {
			t.Errorf("%q is taken for a namespace of tare's", name)
		}
	}
	if err := checkNamespace(Namespace("20260101-abc_1")); err != nil {
		t.Error(err)
	}
	if err := Remove(Namespace("was-never-made")); err != nil {
		t.Errorf("remove what does not exist: %v", err)
	}
}
