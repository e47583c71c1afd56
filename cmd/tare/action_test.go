package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"tare/internal/files"
	"tare/rigs/hosttest"
)

// An action is what action/action.yml says.
type action struct {
	Inputs map[string]struct {
		Description, Default string
		Required             bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []struct {
			ID, If, Uses, Shell, Run string
			Env, With                map[string]string
		}
	}
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	text, err := os.ReadFile("../../action/action.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &a)
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestActionIsSafe: no expression reaches a shell, other actions are pinned by commit, and each input is used.
func TestActionIsSafe(t *testing.T) {
	t.Parallel()
	a := readAction(t)
	used := fmt.Sprintf("%+v", a.Runs.Steps)
	for name, in := range a.Inputs {
		if in.Description == "" || !strings.Contains(used, "inputs."+name) {
			t.Errorf("input %s has no description or no use", name)
		}
	}
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	scripts := 0
	for _, s := range a.Runs.Steps {
		if s.Uses != "" && !pinned.MatchString(s.Uses) {
			t.Errorf("%s is not pinned by commit", s.Uses)
		}
		if s.Run != "" && (strings.Contains(s.Run, "${{") || s.Shell != "bash" || s.ID == "") {
			t.Errorf("step %q in shell %q: %s", s.ID, s.Shell, s.Run)
		}
		if s.Run != "" {
			scripts++
		}
	}
	if a.Runs.Using != "composite" || scripts != 4 {
		t.Errorf("using %s with %d scripts", a.Runs.Using, scripts)
	}
}

// A workflow runs steps of the action as GitHub's runner does, with programs of the test before those of the host.
type workflow struct {
	t       *testing.T
	action  action
	dir     string            // has bin, temp, and the files that steps write to
	context map[string]string // what expressions stand for
	env     []string
}

func newWorkflow(t *testing.T, inputs map[string]string) *workflow {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		hosttest.Missing(t, "bash is not installed", "apt-get install bash")
	}
	scripts, err := filepath.Abs("../../action")
	if err != nil {
		t.Fatal(err)
	}
	w := &workflow{t: t, action: readAction(t), dir: t.TempDir(), context: map[string]string{
		"github.action_path": scripts, "github.action_repository": "someone/tare", "github.token": "no-token",
		"github.event.pull_request.number": "17",
	}}
	for name, in := range w.action.Inputs {
		w.context["inputs."+name] = w.resolve(in.Default)
	}
	for name, value := range inputs {
		w.context["inputs."+name] = value
	}
	for _, d := range []string{"bin", "temp", "home"} {
		if err := os.Mkdir(filepath.Join(w.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.env = []string{
		"PATH=" + filepath.Join(w.dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.dir, "home"),
		"RUNNER_TEMP=" + filepath.Join(w.dir, "temp"), "GITHUB_ACTIONS=true", "GITHUB_SERVER_URL=https://github.example",
		"GITHUB_REPOSITORY=someone/else", "GITHUB_RUN_ID=42", "GITHUB_WORKFLOW=cost", "GITHUB_JOB=weigh", "LC_ALL=C.UTF-8",
	}
	for _, f := range []string{"GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} {
		w.env = append(w.env, f+"="+filepath.Join(w.dir, f))
	}
	return w
}

var expression = regexp.MustCompile(`\$\{\{ *([a-z0-9_.-]+) *\}\}`)

// resolve replaces expressions by what they stand for.
func (w *workflow) resolve(text string) string {
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		value, ok := w.context[name]
		if !ok {
			w.t.Fatalf("the action uses %s, which is not there", name)
		}
		return value
	})
}

// step runs one step, keeps its outputs, and returns its exit code and what it printed.
func (w *workflow) step(id string) (code int, out string) {
	w.t.Helper()
	for _, s := range w.action.Runs.Steps {
		if s.ID != id {
			continue
		}
		cmd := exec.CommandContext(w.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", s.Run)
		cmd.Dir = w.dir
		cmd.Env = w.env
		for name, value := range s.Env {
			cmd.Env = append(cmd.Env, name+"="+w.resolve(value))
		}
		b, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(w.read("GITHUB_OUTPUT")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			w.context["steps."+id+".outputs."+name] = value
		}
		return cmd.ProcessState.ExitCode(), string(b)
	}
	w.t.Fatalf("the action has no step %s", id)
	return 0, ""
}

// read returns a file of the workflow's folder, or nothing.
func (w *workflow) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *workflow) write(name, content string) {
	w.t.Helper()
	if err := files.WriteProgram(filepath.Join(w.dir, name), []byte(content)); err != nil {
		w.t.Fatal(err)
	}
}

// hostile is a text that would leave a file behind if a shell ever parsed it.
const hostile = "$(touch pwned)`touch pwned`'; touch pwned; \"\n::set-output name=x::y"

func TestActionInstallsRelease(t *testing.T) {
	t.Parallel()
	arch, ok := map[string]string{"amd64": "amd64", "arm64": "arm64"}[runtime.GOARCH]
	if !ok || runtime.GOOS != "linux" {
		hosttest.Missing(t, "there are no releases for this host", "run on linux/amd64 or linux/arm64")
	}
	name := "tare-v1.2.3-linux-" + arch
	release := pack(t, name+"/tare", "#!/bin/sh\necho tare of the release\n")
	good := fmt.Sprintf("%x", sha256.Sum256(release))
	signed, other := newSigner(t), newSigner(t)
	sums := good + "  " + name + ".tar.gz\n"
	elsewhere := strings.Repeat("0", 64) + "  " + name + ".tar.gz\n"
	const one, works = "v1.2.3", "tare of the release"
	zeros := strings.Repeat("0", 64)
	for title, c := range map[string]struct {
		version, sha256, releases, signers string // inputs
		want                               string // is printed
		sums, signature                    string // files beside the archive
	}{
		"release":           {one, good, "", "", works, "", ""},
		"without checksum":  {one, "", "", "", "sha256: with version, give", "", ""},
		"another release":   {one, zeros, "", "", "does not have the given sha256", "", ""},
		"hostile checksum":  {one, hostile, "", "", "does not have the given", "", ""},
		"hostile version":   {one + hostile, "", "", "", "version: want one such as v0.2.0", "", ""},
		"hostile address":   {one, good, hostile, "", "cannot download", "", ""},
		"no such release":   {"v9.9.9", good, "", "", "cannot download", "", ""},
		"not yet a release": {"latest", "", "", "", "version: want one such as v0.2.0", "", ""},
		"signed":            {one, good, "", signed.public, works, sums, signed.sign(sums)},
		"not signed":        {one, good, "", signed.public, "the release is not signed", sums, ""},
		"signed by another": {one, good, "", signed.public, "not signed by a signer", sums, other.sign(sums)},
		"changed after it was signed": {
			one, good, "", signed.public, "not signed by a signer", sums, signed.sign(elsewhere),
		},
		"signature of another release": {
			one, good, "", signed.public, "do not list " + name, elsewhere, signed.sign(elsewhere),
		},
		"hostile signers": {one, good, "", hostile, "not signed by a signer", sums, signed.sign(sums)},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			inputs := map[string]string{"version": c.version, "sha256": c.sha256, "signers": c.signers}
			if c.releases != "" {
				inputs["releases"] = c.releases
			}
			w := newWorkflow(t, inputs)
			w.write(name+".tar.gz", string(release))
			for name, text := range map[string]string{"SHA256SUMS": c.sums, "SHA256SUMS.sig": c.signature} {
				if text != "" {
					w.write(name, text)
				}
			}
			w.write("bin/curl", `#!/bin/sh
while [ "$1" != -o ]; do shift; done
case $3 in
https://github.example/someone/tare/releases/download/v1.2.3/*) cp "`+w.dir+`/${3##*/}" "$2" ;;
*) exit 22 ;;
esac
`)
			code, out := w.step("install")
			if (code == 0) != (c.want == works) || code > 1 || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %q:\n%s", code, c.want, out)
			}
			if added := w.read("GITHUB_PATH"); (added != "") != (c.want == works) {
				t.Errorf("added to PATH: %q", added)
			}
			w.unharmed()
		})
	}
}

// A signer signs releases with a key of its own.
type signer struct {
	t           *testing.T
	key, public string
}

func newSigner(t *testing.T) signer {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		hosttest.Missing(t, "ssh-keygen is not installed", "apt-get install openssh-client")
	}
	s := signer{t: t, key: filepath.Join(t.TempDir(), "key")}
	cmd := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	public, err := os.ReadFile(s.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	s.public = "release " + string(public)
	return s
}

// sign returns the signature of a text as that of a release.
func (s signer) sign(text string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "ssh-keygen", "-q", "-Y", "sign", "-n", "tare-release", "-f", s.key)
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// pack returns a release's archive with one program.
func pack(t *testing.T, name, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	_, err := a.Write([]byte(content))
	if err := errors.Join(err, a.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unharmed checks that no shell parsed an input.
func (w *workflow) unharmed() {
	w.t.Helper()
	if found, _ := filepath.Glob(filepath.Join(w.dir, "pwned")); len(found) > 0 {
		w.t.Error("a shell parsed an input")
	}
}

func TestActionBuildsFromSource(t *testing.T) {
	t.Parallel()
	w := newWorkflow(t, nil)
	w.write("bin/go", `#!/bin/sh
test "$CGO_ENABLED" = 0 && test -f go.mod && echo "go $*" || exit 1
printf '#!/bin/sh\necho tare of the sources' >"$4"
chmod +x "$4"
`)
	code, out := w.step("install")
	if code != 0 || !strings.Contains(out, "go build -trimpath -o ") || !strings.Contains(out, "tare of the sources") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestActionRuns runs an experiment with tare itself, which TestMain puts on the PATH, comments its report, and ends
// with its exit code.
func TestActionRuns(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, "exec")
	t.Parallel()
	w := newWorkflow(t, map[string]string{"file": "r.yaml", "flags": "--set\n\nblocks=3\n"})
	w.write("shelly.sh", toyDriver)
	w.write("r.yaml", `{name: r, area: exec, question: compare, blocks: 2, baseline: {check: none},
treatments: [{check: hmac}], target: {program: [sh, shelly.sh], rounds: 3, span: 1ms}}`)
	code, out := w.step("run")
	if code != 0 || !strings.Contains(out, "block 3/3") {
		t.Fatalf("exit code %d:\n%s", code, out)
	}
	got := maps.Clone(w.context)
	want := map[string]string{"0": "pass", "11": "inconclusive", "12": "invalid"}[got["steps.run.outputs.code"]]
	if want == "" || got["steps.run.outputs.verdict"] != want {
		t.Errorf("outputs %v, want verdict %q:\n%s", got, want, out)
	}
	for _, f := range []string{"report.html", "report.md", "junit.xml", "tare.sarif", "results/r-*/record.jsonl"} {
		if found, _ := filepath.Glob(filepath.Join(got["steps.run.outputs.folder"], f)); len(found) != 1 {
			t.Errorf("%s: %v", f, found)
		}
	}
	if !strings.Contains(w.read("GITHUB_STEP_SUMMARY"), "hmac") {
		t.Errorf("summary:\n%s", w.read("GITHUB_STEP_SUMMARY"))
	}

	w.gh("")
	if code, out := w.step("comment"); code != 0 || strings.Contains(out, "::warning") {
		t.Errorf("comment: %d\n%s", code, out)
	}
	if body := w.read("body"); !strings.Contains(body, "**tare: "+want+"**") || !strings.Contains(body, "hmac") {
		t.Errorf("comment:\n%s", body)
	}
	if code, out := w.step("verdict"); fmt.Sprint(code) != got["steps.run.outputs.code"] {
		t.Errorf("verdict: %d\n%s", code, out)
	}
}

func TestActionRunsNoInput(t *testing.T) {
	t.Parallel()
	for _, file := range []string{hostile, "--help", "missing.yaml"} {
		w := newWorkflow(t, map[string]string{"file": file, "flags": "--set\n" + hostile})
		code, out := w.step("run")
		if code != 0 || w.context["steps.run.outputs.verdict"] != "error" || strings.Contains(out, "\n::") {
			t.Errorf("%q: exit code %d, %v\n%s", file, code, w.context["steps.run.outputs.verdict"], out)
		}
		if code, _ := w.step("verdict"); code != 1 && code != 2 {
			t.Errorf("%q ends with %d", file, code)
		}
		w.unharmed()
	}
}

// toyDriver is a program of area exec that does nothing.
const toyDriver = `while read -r request; do
  id=${request#*:}; id=${id%%,*}
  case $request in
  *describe*)
    ok='{"protocol":1,"name":"shelly","operations":[{"name":"load","most":1}],"factors":{"check":["none","hmac"]}}' ;;
  *verify*) ok='{"checks":["nothing is there to see"]}' ;;
  *'"calls":0'*) ok='{"calls":0}' ;;
  *operate*) ok='{"calls":1}' ;;
  *) ok='{}' ;;
  esac
  echo "{\"id\":$id,\"ok\":$ok}"
  case $request in *stop*) exit ;; esac
done
`

// gh puts a program gh into place that finds the comments old, and keeps how it was called and what it would send.
func (w *workflow) gh(old string) {
	w.t.Helper()
	w.write("bin/gh", `#!/bin/sh
echo "$*" >>'`+w.dir+`/calls'
[ -e '`+w.dir+`/forbidden' ] && { echo 'gh: Resource not accessible by integration (HTTP 403)' >&2; exit 1; }
for a; do case $a in body=@*) cp "${a#body=@}" '`+w.dir+`/body' ;; esac; done
[ "$2" = --paginate ] && printf '`+old+`'
exit 0
`)
}

func TestActionComments(t *testing.T) {
	t.Parallel()
	all := "repos/someone/else/issues/17/comments"
	for title, c := range map[string]struct {
		report, old string
		forbidden   bool
		calls, body string
		warns       bool
	}{
		"first":     {report: "# r\n", calls: "api --method POST " + all, body: "# r\n"},
		"again":     {report: "# r\n", old: `7\n8\n`, calls: "api --method PATCH repos/someone/else/issues/comments/7 "},
		"no report": {calls: "api --method POST ", body: "There is no report: the log says why."},
		"long":      {report: strings.Repeat("é", 40000), calls: "POST", body: "é\n\n… the rest is on the report page\n"},
		"fork":      {report: "# r\n", forbidden: true, calls: "api --paginate " + all, warns: true},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			w := newWorkflow(t, map[string]string{"file": hostile})
			w.context["steps.run.outputs.folder"], w.context["steps.run.outputs.verdict"] = w.dir, "pass"
			if c.report != "" {
				w.write("report.md", c.report)
			}
			if c.forbidden {
				w.write("forbidden", "")
			}
			w.gh(c.old)
			code, out := w.step("comment")
			if code != 0 || strings.Contains(out, "::warning") != c.warns {
				t.Errorf("exit code %d, want a warning: %t\n%s", code, c.warns, out)
			}
			if calls := w.read("calls"); !strings.Contains(calls, c.calls) {
				t.Errorf("calls %s\nwant %s", calls, c.calls)
			}
			body := w.read("body")
			if !strings.Contains(body, c.body) || len(body) > 65536 || !utf8.ValidString(body) ||
				strings.Contains(body, "touch") {
				t.Errorf("comment of %d bytes: %.300s", len(body), body)
			}
			w.unharmed()
		})
	}
}

func TestActionVerdict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code, inconclusive string
		want               int
	}{
		{"0", "fail", 0},
		{"10", "warn", 10},
		{"11", "fail", 11},
		{"11", "warn", 0},
		{"11", "warn-unshown", 11}, // the program on the PATH forgives --inconclusive-ok only
		{"12", "warn", 12},
		{"14", "warn-unshown", 14},
		{"0", hostile, 2},
	} {
		w := newWorkflow(t, map[string]string{"inconclusive": c.inconclusive})
		w.write("bin/tare", "#!/bin/sh\n[ \"$1 $2 $3 $4\" = \"check --inconclusive-ok -- $TARE_FOLDER/results/r\" ] && "+
			"[ -z \"$GITHUB_ACTIONS\" ]\n")
		w.context["steps.run.outputs.code"], w.context["steps.run.outputs.folder"] = c.code, w.dir
		if err := os.MkdirAll(filepath.Join(w.dir, "results", "r"), 0o700); err != nil {
			t.Fatal(err)
		}
		if got, out := w.step("verdict"); got != c.want {
			t.Errorf("%s %s: %d, want %d\n%s", c.code, c.inconclusive, got, c.want, out)
		}
		w.unharmed()
	}
}
