package decision

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/areas/decision/replica"
	"tare/internal/design"
	"tare/rigs/areatest"
)

// The policies of somebody else: as the tutorials of their engines have them.
const (
	salaries = "package httpapi.authz\n\nimport rego.v1\n\ndefault allow := false\n\nallow if {\n" +
		"\tinput.method == \"GET\"\n\tsome m in data.managers[input.user]\n\tinput.path == [\"salary\", m]\n}\n"
	managers    = `{"managers": {"bob": ["alice"]}}`
	departments = "permit (principal, action == Action::\"read\", resource)\nwhen { principal.department == \"hr\" };\n"
	forbidden   = "forbid (principal, action, resource == doc::\"secret\");\n"
)

// reading is an XACML policy: people of the department hr read documents, but not the one called secret. One without
// MustBePresent is Indeterminate about a request without a department.
const reading = `<?xml version="1.0"?>
<Policy xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" PolicyId="a&amp;b" Version="1.0"
  RuleCombiningAlgId="urn:oasis:names:tc:xacml:1.0:rule-combining-algorithm:first-applicable">
  <Target><AnyOf><AllOf><Match MatchId="urn:oasis:names:tc:xacml:1.0:function:string-equal">
    <AttributeValue DataType="http://www.w3.org/2001/XMLSchema#string">read</AttributeValue>
    <AttributeDesignator Category="urn:oasis:names:tc:xacml:3.0:attribute-category:action" MustBePresent="true"
      AttributeId="urn:oasis:names:tc:xacml:1.0:action:action-id"
      DataType="http://www.w3.org/2001/XMLSchema#string"/>
  </Match></AllOf></AnyOf></Target>
  <Rule RuleId="secret" Effect="Deny"><Target><AnyOf><AllOf>
  <Match MatchId="urn:oasis:names:tc:xacml:1.0:function:string-equal">
    <AttributeValue DataType="http://www.w3.org/2001/XMLSchema#string">secret</AttributeValue>
    <AttributeDesignator Category="urn:oasis:names:tc:xacml:3.0:attribute-category:resource" MustBePresent="true"
      AttributeId="urn:oasis:names:tc:xacml:1.0:resource:resource-id"
      DataType="http://www.w3.org/2001/XMLSchema#string"/>
  </Match></AllOf></AnyOf></Target></Rule>
  <Rule RuleId="hr" Effect="Permit"><Condition>
    <Apply FunctionId="urn:oasis:names:tc:xacml:1.0:function:string-equal">
      <Apply FunctionId="urn:oasis:names:tc:xacml:1.0:function:string-one-and-only">
        <AttributeDesignator Category="urn:oasis:names:tc:xacml:1.0:subject-category:access-subject"
          MustBePresent="true"
          AttributeId="urn:tare:attribute:department" DataType="http://www.w3.org/2001/XMLSchema#string"/>
      </Apply>
      <AttributeValue DataType="http://www.w3.org/2001/XMLSchema#string">hr</AttributeValue>
    </Apply></Condition></Rule>
  <Rule RuleId="others" Effect="Deny"/>
</Policy>
`

// inSet puts a policy into a set.
func inSet(policy string) string {
	_, policy, _ = strings.Cut(policy, "?>")
	return `<PolicySet xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" PolicySetId="all" Version="1.0"
 PolicyCombiningAlgId="urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:deny-overrides"><Target/>` + policy + `</PolicySet>`
}

// A tree is texts by path.
type tree = map[string]string

// written writes files into a new folder.
func written(t *testing.T, texts tree) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func xacmlFile(t *testing.T, text string) string {
	return filepath.Join(written(t, tree{"policies.xml": text}), "policies.xml")
}

// archived packs files into a bundle as `opa build` does.
func archived(t *testing.T, texts tree) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range texts {
		if err := w.WriteHeader(&tar.Header{Name: "/" + name, Mode: 0o600, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := errors.Join(w.Close(), z.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// holed writes an archive of a few bytes with a file that is one hole of 4 GiB, as GNU tar writes it.
func holed(t *testing.T, name string) string {
	t.Helper()
	header := make([]byte, 512)
	for at, text := range map[int]string{
		0: name, 100: "0000600", 108: "0000000", 116: "0000000", 124: "00000000000", 136: "00000000000", 148: "        ",
		156: "S", 257: "ustar  ", 386: "40000000000", 398: "00000000000", 483: "40000000000",
	} {
		copy(header[at:], text)
	}
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write(append(header, make([]byte, 1024)...))
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	if err := errors.Join(err, z.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

func ownSpec(k engine.Kind, bundle string) *Spec {
	s := &Spec{Embedded: &Embedded{Engine: k, Bundle: bundle}}
	if k == engine.OPA {
		s.OPA = &protocol.OPA{Path: "httpapi/authz/allow"}
		s.Requests = []Request{
			{Name: "manager", Body: `{"input": {"method": "GET", "path": ["salary", "alice"], "user": "bob"}}`, Expect: "permit"},
			{Name: "other", Body: `{"input": {"method": "GET", "path": ["salary", "bob"], "user": "alice"}}`, Expect: "deny"},
		}
		return s
	}
	of := func(name, department, resource, expect string) Request {
		return Request{
			Name: name, Subject: Entity{"user", "a", map[string]string{"department": department}}, Action: "read",
			Resource: Entity{Type: "doc", ID: resource}, Expect: expect,
		}
	}
	s.Requests = []Request{
		of("hr", "hr", "x", "permit"), of("it", "it", "x", "deny"), of("secret", "hr", "secret", "deny"),
	}
	return s
}

// TestOwnPoliciesDecide starts engines with policies that are not tare's, and asks about them.
func TestOwnPoliciesDecide(t *testing.T) {
	withoutSecret := strings.Replace(reading, ">secret<", ">other<", 1)
	unknown := strings.ReplaceAll(reading, "function:string-equal", "function:string-alike")
	rego := tree{"authz/policy.rego": salaries, "data.json": managers}
	both := tree{"a.cedar": departments, "more/b.cedar": forbidden}
	objecting := written(t, tree{
		"policy.rego": "package httpapi.authz\nimport rego.v1\nallow contains \"no\" if input.user != \"bob\"\n",
	})
	for name, c := range map[string]struct {
		kind   engine.Kind
		bundle string
		want   string // in why it is not in force; empty: it is
	}{
		"cedar":                           {engine.Cedar, written(t, both), ""},
		"cedar, a file that lacks a rule": {engine.Cedar, written(t, tree{"a.cedar": departments}) + "/a.cedar", `"secret"`},
		"cedar that permits all": {
			engine.Cedar, written(t, tree{"a.cedar": "permit (principal, action, resource);"}), "permits a request",
		},
		"att":                     {engine.ATT, xacmlFile(t, inSet(reading)), ""},
		"authzforce":              {engine.AuthzForce, xacmlFile(t, reading), ""},
		"att without a rule":      {engine.ATT, xacmlFile(t, withoutSecret), "secret, asked as the load asks it"},
		"att, no such function":   {engine.ATT, xacmlFile(t, unknown), "Indeterminate"},
		"authzforce, no function": {engine.AuthzForce, xacmlFile(t, unknown), "string-alike"},
		"opa":                     {engine.OPA, written(t, rego), ""},
		"opa, an archive":         {engine.OPA, archived(t, rego), ""},
		"opa that permits all in a hidden folder": {engine.OPA, written(t, tree{
			"authz/policy.rego": salaries, "data.json": managers, ".a/b.rego": "package httpapi.authz\nallow if true\n",
		}), "permits a request"},
		"opa with data beside": {
			engine.OPA, written(t, tree{"policy.rego": salaries, "data.json": managers, "more.json": "{}"}), "",
		},
		"opa with hidden data": {engine.OPA, written(t, tree{
			"policy.rego": strings.Replace(salaries, "data.", "data.git.", 1), ".git/data.json": managers,
		}), ""},
		"opa, Rego of before 1.0": {engine.OPA, written(t, tree{
			"policy.rego": "package httpapi.authz\ndefault allow = false\nallow { input.user == \"bob\" }\n",
		}), ""},
		"opa, reasons to refuse":          {engine.OPA, objecting, ""},
		"opa, a set of what is not known": {engine.OPA, objecting, "opa.messages: true takes it for the reasons to refuse"},
		"opa without its data":            {engine.OPA, written(t, tree{"policy.rego": salaries}), `canary "manager"`},
		"opa that does not compile": {
			engine.OPA, written(t, tree{"policy.rego": salaries + "allow if { x }\n"}), "policy.rego",
		},
	} {
		t.Run(name, func(t *testing.T) {
			env := testEnv(t)
			if c.kind != engine.Cedar {
				env, _ = requireEngine(t, c.kind)
			}
			spec := ownSpec(c.kind, c.bundle)
			spec.Embedded.RegoV0 = strings.Contains(name, "before 1.0")
			if strings.Contains(name, "reasons") {
				spec.OPA.Messages = true
			}
			tg, err := tried(t, spec, env)
			if !said(err, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			named := strings.Contains(strings.Join(tg.Notes(), "\n"), "hidden, and in force")
			if named != strings.Contains(name, "hidden") {
				t.Errorf("what is hidden is named: %v", named)
			}
			named = strings.Contains(strings.Join(tg.Notes(), "\n"), "takes these, too: more.json")
			if named != strings.Contains(name, "beside") {
				t.Errorf("what is beside the bundle's data is named: %v", named)
			}
		})
	}
}

// compiled returns why the policies of a section's own cannot be meant.
func compiled(s *Spec) error {
	p, err := s.plan(standard)
	if err != nil {
		return err
	}
	return p.compileBundle()
}

// TestOwnPoliciesAreChecked: what cannot be meant is refused before anything starts, with the place in the user's file.
func TestOwnPoliciesAreChecked(t *testing.T) {
	good := written(t, tree{"a.cedar": departments})
	rego := written(t, tree{"policy.rego": salaries})
	much := archived(t, tree{"data.json": strings.Repeat(" ", 65<<20)})
	twice := archived(t, tree{"a/policy.rego": salaries, "./b/../a/policy.rego": salaries})
	once := archived(t, tree{"a/policy.rego": salaries, "policy.rego": "package a\n"})
	bad := written(t, tree{"a.cedar": "permit (principal, action, resource)\n\twhen { principal.d = 1 };\n"})
	for name, c := range map[string]struct {
		change func(s *Spec)
		want   string
	}{
		"good":           {func(*Spec) {}, ""},
		"no request":     {func(s *Spec) { s.Requests = nil }, "requests: name questions about the policies of the bundle"},
		"none refused":   {func(s *Spec) { s.Requests = s.Requests[:1] }, "none of them is expected to be denied"},
		"their number":   {func(s *Spec) { s.Policies = 5 }, "policies: a bundle has as many as it has"},
		"no such file":   {func(s *Spec) { s.Embedded.Bundle = "/nowhere" }, "bundle: open /nowhere: no such file"},
		"another engine": {func(s *Spec) { s.Embedded.Engine = engine.PDPX }, "own policies cannot be given to pdpx"},
		"reasons of tare's": {
			func(s *Spec) {
				*s = Spec{Embedded: &Embedded{Engine: engine.OPA}, OPA: &protocol.OPA{Messages: true}}
			}, "opa.messages: it is about a rule of yours",
		},
		"reasons before an enforcer": {
			func(s *Spec) {
				s.Embedded = &Embedded{Engine: engine.OPA, Bundle: rego, Enforcer: &Enforcer{}}
				s.OPA = &protocol.OPA{Path: "a/deny", Messages: true}
			}, "enforcer: its own answer is true or false",
		},
		"an archive of much": {func(s *Spec) { *s = *ownSpec(engine.OPA, much) }, "bundle.tar.gz holds more than 64 MiB"},
		"a hole that OPA would load": {
			func(s *Spec) { *s = *ownSpec(engine.OPA, holed(t, "data.json")) }, "bundle.tar.gz holds more than 64 MiB",
		},
		"a hole beside what OPA loads": {
			func(s *Spec) { *s = *ownSpec(engine.OPA, holed(t, "x.bin")) }, "bundle.tar.gz holds more than 64 MiB",
		},
		"an archive with two files of a name": {
			func(s *Spec) { *s = *ownSpec(engine.OPA, twice) }, "bundle.tar.gz holds a/policy.rego twice",
		},
		"an archive with two files": {func(s *Spec) { *s = *ownSpec(engine.OPA, once) }, ""},
		"no policies":               {func(s *Spec) { s.Embedded.Bundle = t.TempDir() }, "there is no .cedar file"},
		"no Cedar": {
			func(s *Spec) { s.Embedded.Bundle = bad },
			"a.cedar:2:23: at \"1\": exact got = want }\n    2 | \twhen { principal.d = 1 };\n        \t                     ^",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := ownSpec(engine.Cedar, good)
			c.change(s)
			if err := compiled(s); !said(err, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestLinksInFoldersAreRefused: an engine may follow a link that a copy of the folder does not have, so that what is
// measured and compared would not be what decides.
func TestLinksInFoldersAreRefused(t *testing.T) {
	const refused = " is a link, and whether your decision point follows it is not known"
	for _, c := range []struct {
		kind       engine.Kind
		link, want string
	}{
		{engine.OPA, "extra.rego", refused},
		{engine.OPA, "data.json", refused},
		{engine.OPA, "extra.cedar", ""},
		{engine.Cedar, "extra.cedar", refused},
		{engine.Cedar, "more.entities.json", refused},
		{engine.Cedar, "extra.cedar.json", refused},
		{engine.Cedar, "extra.rego", ""},
	} {
		dir := written(t, tree{"a.cedar": departments, "policy.rego": salaries, "notes.txt": "more"})
		if err := os.Symlink("notes.txt", filepath.Join(dir, c.link)); err != nil {
			t.Fatal(err)
		}
		if err := compiled(ownSpec(c.kind, dir)); !said(err, c.want) {
			t.Errorf("%s, %s: %v, want %q", c.kind, c.link, err, c.want)
		}
	}
}

// TestXACMLIsChecked: what an engine would misread, or read elsewhere, is refused with its line.
func TestXACMLIsChecked(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a policy":     {reading, ""},
		"a set":        {inSet(reading), ""},
		"no XML":       {reading[:200], "policies.xml:3: no XML"},
		"nothing":      {"", "holds no element"},
		"another root": {strings.ReplaceAll(reading, "Policy", "Request"), ":3: the outermost element is Request"},
		"XACML 2.0":    {strings.Replace(reading, "3.0:core:schema:wd-17", "2.0:policy:schema:os", 1), "not of XACML 3.0"},
		"no name":      {strings.Replace(reading, "PolicyId", "Id", 1), "policies.xml:3: Policy has no PolicyId"},
		"entities": {
			strings.Replace(reading, "?>", "?><!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>", 1), "document type",
		},
		"a reference": {
			strings.Replace(inSet(reading), "</PolicySet>", "\n<PolicyIdReference>b</PolicyIdReference></PolicySet>", 1),
			"policies.xml:30: PolicyIdReference",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := compiled(ownSpec(engine.ATT, xacmlFile(t, c.text))); !said(err, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := engine.ATT.CheckOwn(t.TempDir()); err == nil {
		t.Error("a folder is taken for a file")
	}
}

// library are the files of a library as examples of Cedar are kept: what a user may read follows from entities, and a
// reader's right is a template with a link.
func library() tree {
	return tree{
		"policies.cedar": "@id(\"loans\")\n" +
			"permit (principal in Lib::Group::\"members\", action == Lib::Action::\"lend\", resource)\n" +
			"when { principal.loans < 3 && context.at < datetime(\"2030-01-01\") };\n" +
			"permit (principal == ?principal, action == Lib::Action::\"read\", resource == ?resource);\n" +
			"@id(\"closed\")\nforbid (principal, action == Lib::Action::\"read\", resource == Lib::Book::\"secret\");\n",
		"lib.cedarschema": "namespace Lib { entity Group, Book; entity User in [Group] = { loans: Long };\n" +
			"action lend, read appliesTo { principal: User, resource: Book, context: { at: datetime } }; }\n",
		"entities.json": `[{"uid": {"type": "Lib::User", "id": "ann"}, "attrs": {"loans": 1},
			"parents": [{"type": "Lib::Group", "id": "members"}]},
			{"uid": {"type": "Lib::User", "id": "bob"}, "attrs": {"loans": 3},
			"parents": [{"type": "Lib::Group", "id": "members"}]},
			{"uid": {"type": "Lib::User", "id": "cid"}, "attrs": {},
			"parents": [{"type": "Lib::Group", "id": "members"}]}]`,
		"linked": `[{"template_id": "policy1", "link_id": "bob-reads",
			"args": {"?principal": "Lib::User::\"bob\"", "?resource": "Lib::Book::\"atlas\""}}]`,
		"ALLOW/ann-lends.json": borrowing("ann", "lend"), "DENY/lends.json": borrowing("bob", "lend"),
		"ALLOW/reads.json": borrowing("bob", "read"), "DENY/reads.json": borrowing("ann", "read"),
		"tests.json": fmt.Sprintf(`[{"name": "none is secret", "decision": "deny", "reason": ["closed"], "request": %s},
			{"decision": "allow", "request": %s, "entities": []},
			{"decision": "deny", "request": {}, "name": "%s"}]`,
			strings.Replace(borrowing("bob", "read"), "atlas", "secret", 1), borrowing("ann", "lend"),
			strings.Repeat("x", 300)),
		"old.cedar.json": "{}",
	}
}

func borrowing(who, does string) string {
	return fmt.Sprintf(`{"principal": "Lib::User::\"%s\"", "action": "Lib::Action::\"%s\"",
		"resource": "Lib::Book::\"atlas\"", "context": {"at": "2026-06-01"}}`, who, does)
}

// TestCedarWithItsEntities: a folder of Cedar decides by its entities and schema about the requests in it, and a policy
// that decides none of them is named.
func TestCedarWithItsEntities(t *testing.T) {
	for want, change := range map[string]func(f tree){
		"":               func(tree) {},
		"-lends\"":       func(f tree) { delete(f, "entities.json") },
		"canary \"reads": func(f tree) { delete(f, "linked") },
	} {
		f := library()
		change(f)
		dir := written(t, f)
		spec := &Spec{Embedded: &Embedded{Engine: engine.Cedar, Bundle: dir}, RequestFiles: dir}
		spec.Requests = []Request{{ // what a request says of an entity stands beside what is known of it
			Name: "cid-lends", Expect: "permit", Body: `{"subject": {"type": "Lib::User", "id": "cid",
				"properties": {"loans": 0}}, "action": {"name": "Lib::Action::\"lend\"", "properties": {"late": true}},
				"resource": {"type": "Lib::Book", "id": "atlas"}, "context": {"at": "2026-06-01"}}`,
		}}
		tg, err := tried(t, spec, testEnv(t))
		if !said(err, want) {
			t.Fatalf("%v, want %q", err, want)
		}
		if want != "" {
			continue
		}
		notes := strings.Join(append(tg.Warnings(), tg.Notes()...), "\n")
		for _, want := range []string{
			"3 policies in force; 2 of them decide", "1 policy decides about no request, but in one of the bundle's own tests",
			"not in these numbers: closed",
			"of 3 tests of its own, 2 failed: tests.json#2 (the decision is deny), " + strings.Repeat("x", 200) + "… (",
			"Cedar's JSON are not taken, and not in these numbers: old.cedar.json",
		} {
			if !strings.Contains(notes, want) {
				t.Errorf("notes lack %q:\n%s", want, notes)
			}
		}
	}
}

// TestRequestFiles: files are requests with names of their own, for the adapters that have a form for them.
func TestRequestFiles(t *testing.T) {
	dir := written(t, library())
	got, err := readRequests(dir, "authzen")
	var names []string
	for _, r := range got {
		names = append(names, r.Name+" "+r.Expect)
	}
	if d := cmp.Diff([]string{"ann-lends permit", "reads permit", "lends deny", "reads-deny deny"}, names); d != "" ||
		err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	dir = written(t, tree{
		"x/permit/ä b.json": `{"user": "a"}`, "x/deny/.json": "1", "x/readme.json": "{", "x/deny/l.txt": "{",
		"x/permit/two.yaml": "# inputs\n---\na: yes\n---\n---\n- 07\n", "x/deny/one.yml": "at: 2026-01-01",
	})
	got, err = readRequests(dir, "opa")
	want := []Request{
		{Name: "request", Body: `{"input":1}`, Expect: "deny"},
		{Name: "one", Body: `{"input":{"at":"2026-01-01"}}`, Expect: "deny"},
		{Name: "two", Body: `{"input":{"a":true}}`, Expect: "permit"},
		{Name: "two-permit", Body: `{"input":[7]}`, Expect: "permit"},
		{Name: "b", Body: `{"input":{"user":"a"}}`, Expect: "permit"},
	}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	many, much := tree{}, strings.Repeat(" ", replica.MostYAML+1)
	for i := range mostRequests + 1 {
		many[fmt.Sprintf("ALLOW/%d.json", i)] = "1"
	}
	for want, c := range map[string]struct {
		adapter string
		files   tree
	}{
		"for authzen, opa, openfga, xacml, not for pdpx": {"pdpx", tree{"ALLOW/x.json": "{}"}},
		`holds no "Request"`:                             {"xacml", tree{"ALLOW/x.json": "{}"}},
		"there is no request in":                         {"opa", nil},
		"DENY/x.yaml: yaml: line 1: did not find":        {"opa", tree{"DENY/x.yaml": "a: [1"}},
		"DENY/x.yml: more than 4 MiB of YAML":            {"opa", tree{"DENY/x.yml": much}},
		"there is no request":                            {"authzen", tree{"DENY/x.yaml": "{}"}}, // it has no YAML
		"DENY/x.json: a request is":                      {"authzen", tree{"DENY/x.json": "[1]"}},
		"more than 200":                                  {"opa", many},
	} {
		if _, err := readRequests(written(t, c.files), c.adapter); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestBundlesAreTheProgram: blocks of two contents are never mixed, and a bundle is a factor.
func TestBundlesAreTheProgram(t *testing.T) {
	before := written(t, tree{"a.cedar": departments})
	after := written(t, tree{"a.cedar": forbidden})
	of := func() map[string]string {
		all := []design.Treatment{
			{ID: "before", Levels: map[string]string{"bundle": before}},
			{ID: "after", Levels: map[string]string{"bundle": after}},
		}
		x, err := bundles(context.Background(), ownSpec(engine.Cedar, before), area.Env{Treatments: all})
		if err != nil || !x.Files || len(x.Identity) != 2 {
			t.Fatalf("%+v, %v", x, err)
		}
		return x.Identity
	}
	first := of()
	if first[before] == first[after] {
		t.Error("two contents have one sum")
	}
	if err := os.WriteFile(filepath.Join(after, "a.cedar"), []byte(departments), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := of(); again[after] == first[after] || again[before] != first[before] {
		t.Errorf("%v, then %v", first, again)
	}
}

// TestDataThatGrow: the decision point has the copies, decides about them as about the originals, and answers what is
// asked of the originals as before.
func TestDataThatGrow(t *testing.T) {
	body := func(text string) string { return `{"input": ` + text + `}` }
	staff := func(name, who, expect string) Request {
		return Request{
			Name: name, Subject: Entity{Type: "User", ID: who}, Action: "read", Resource: Entity{Type: "doc", ID: "plan"},
			Expect: expect,
		}
	}
	check := func(user, doc string) string {
		return `{"tuple_key": {"user": "user:` + user + `", "relation": "owner", "object": "doc:` + doc + `"}}`
	}
	for k, s := range map[engine.Kind]*Spec{
		engine.OPA: {
			Embedded: &Embedded{Bundle: written(t, tree{
				"a.rego": "package a\nimport rego.v1\ndefault allow := false\nallow if {\n" +
					"\tcount(data.staff) == input.n\n\tsome b in data.roles\n\tb.user == input.user\n}\n",
				"data.json": `{"staff": {"ann": {}, "bob": {}}, "roles": [{"user": "ann"}]}`,
			}), Data: &replica.Data{Of: []string{"staff", "roles[].user"}}},
			OPA: &protocol.OPA{Path: "a/allow"},
			Requests: []Request{
				{Name: "original", Body: body(`{"n": 40, "user": "ann"}`), Expect: "permit"},
				{Name: "copy", Body: body(`{"n": 40, "user": "ann~20"}`), Expect: "permit"},
				{Name: "beyond", Body: body(`{"n": 40, "user": "ann~21"}`), Expect: "deny"},
				{Name: "no-role", Body: body(`{"n": 40, "user": "bob~20"}`), Expect: "deny"},
			},
		},
		engine.Cedar: {
			Embedded: &Embedded{Bundle: written(t, tree{
				"a.cedar": `permit (principal in Team::"staff", action, resource) when { principal.boss == User::"eve" };`,
				"entities.json": `[{"uid": {"type": "User", "id": "ann"}, "attrs": {"boss": {"__entity": {"type": "User", ` +
					`"id": "eve"}}}, "parents": [{"type": "Team", "id": "staff"}]}]`,
			}), Data: &replica.Data{Of: []string{"User"}}},
			Requests: []Request{
				staff("original", "ann", "permit"), staff("copy", "ann~20", "permit"), staff("beyond", "ann~21", "deny"),
			},
		},
		engine.OpenFGA: {
			Embedded: &Embedded{Bundle: storeSpec(t, shelves).Embedded.Bundle},
			Requests: []Request{
				{Name: "original", Body: check("ann", "a"), Expect: "permit"},
				{Name: "copy", Body: check("ann~20", "a~20"), Expect: "permit"},
				{Name: "another", Body: check("ann~20", "a"), Expect: "deny"},
			},
		},
	} {
		t.Run(string(k), func(t *testing.T) {
			env, _ := requireEngine(t, k)
			s.Embedded.Engine = k
			twenty := areatest.Treatment("data.times", "20")
			if f := s.Validate(area.Asked{}, []design.Treatment{twenty}); len(f) > 0 {
				t.Fatal(f)
			}
			tg, j := opened(t, s, env)
			if err := tg.Prepare(t.Context(), twenty, j); err != nil {
				t.Fatal(err)
			}
			if err := tg.Verify(t.Context(), twenty); err != nil {
				t.Error(err)
			}
			if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, "the data are there 20 times, ") {
				t.Errorf("notes:\n%s", notes)
			}
		})
	}
}

// TestDataThatCannotGrow: what a file says of data that are not there is said at its place.
func TestDataThatCannotGrow(t *testing.T) {
	opa, cedar := ownSpec(engine.OPA, written(t, tree{"a.rego": salaries, "data.json": managers})),
		ownSpec(engine.Cedar, filepath.Join(written(t, tree{"a.cedar": departments}), "a.cedar"))
	for want, c := range map[string]struct {
		spec *Spec
		data replica.Data
	}{
		"embedded.data: data: of: say what grows":        {opa, replica.Data{}},
		"embedded.data: data: of: bosses: the bundle's":  {opa, replica.Data{Of: []string{"bosses"}}},
		"embedded.data: data: there is nothing":          {cedar, replica.Data{}},
		"embedded.data: data: it is about the data of a": {embedded(engine.Cedar, Planted{}), replica.Data{}},
		"embedded.data.times: data.times is varied":      {opa, replica.Data{Of: []string{"managers"}, Times: 5}},
	} {
		s := *c.spec
		e := *s.Embedded
		e.Data = &c.data
		s.Embedded = &e
		var got []string
		twice := areatest.Treatment("data.times", "2")
		for _, f := range s.Validate(area.Asked{}, []design.Treatment{twice}) {
			got = append(got, f.Path+": "+f.Message)
		}
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
