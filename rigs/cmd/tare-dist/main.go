// Command tare-dist makes the files of a release: archives of static binaries, software bills of materials, an OCI
// image, a krew manifest, and the checksums of all, signed if there is a key. The same inputs give the same bytes.
// "make dist" runs it.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"text/template"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tare-dist:", err)
		os.Exit(1)
	}
}

// A release is what all its files say of themselves.
type release struct {
	version, commit string
	date            time.Time
	url             string // where its files will be downloaded, or ""
	key             string // file of the private key that signs it, or ""
	out             string
	files           map[string][]byte // what was written, by name
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("tare-dist", flag.ContinueOnError)
	flags.SetOutput(stderr)
	r := &release{files: map[string][]byte{}}
	flags.StringVar(&r.version, "version", "", "version, such as v0.2.0")
	flags.StringVar(&r.commit, "commit", "", "commit")
	date := flags.String("date", "", "date of the commit, such as 2026-11-23T13:16:00Z: the time of every file")
	flags.StringVar(&r.url, "url", "", "folder of the release's downloads, for the krew manifest")
	flags.StringVar(&r.key, "sign", "", "file of the SSH key that signs the checksums")
	flags.StringVar(&r.out, "out", "bin/dist", "folder to write")
	stage := flags.String("stage", "bin/stage", "folder for ARCH/tare and share/, the files that every archive holds")
	check := flags.Bool("check", false, "make the release of this commit again, elsewhere, and compare")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if r.date, err = time.Parse(time.RFC3339, *date); err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	if !regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]*$`).MatchString(r.version) {
		return fmt.Errorf("-version %q: want a word such as v0.2.0", r.version)
	}
	if *check {
		again := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return strings.Trim(a, "-") == "check" })
		return r.check(ctx, again, stdout)
	}
	err = errors.Join(os.RemoveAll(r.out), r.stage(ctx, *stage))
	if err != nil {
		return err
	}
	if err := r.pack(ctx, *stage, stdout); err != nil {
		return err
	}
	return errors.Join(r.list(stdout), r.sign(ctx, stdout))
}

// pack writes all files but the checksums.
func (r *release) pack(ctx context.Context, stage string, stdout io.Writer) error {
	share, err := tree(filepath.Join(stage, "share"))
	if err != nil {
		return err
	}
	binaries := map[string][]byte{}
	for _, arch := range []string{"amd64", "arm64"} {
		name := filepath.Join(stage, arch, "tare")
		if binaries[arch], err = os.ReadFile(name); err != nil {
			return err
		}
		modules, err := modulesOf(name, arch)
		if err != nil {
			return err
		}
		licenses, err := licensesOf(ctx, modules)
		if err != nil {
			return err
		}
		base := "tare-" + r.version + "-linux-" + arch
		entries := append(slices.Clone(share), entry{name: "THIRD_PARTY_LICENSES", content: licenses},
			entry{name: "tare", content: binaries[arch], mode: 0o755})
		for i := range entries {
			entries[i].name = path.Join(base, entries[i].name)
		}
		err = errors.Join(
			r.write(base+".tar.gz", archive(entries, r.date, true)),
			r.write(base+".cdx.json", r.bill(modules, binaries[arch])))
		if err != nil {
			return err
		}
	}
	if err := r.write("tare-"+r.version+"-oci.tar", r.image(binaries)); err != nil {
		return err
	}
	return r.krew(stdout)
}

// tree reads all files below dir, by name.
func tree(dir string) (out []entry, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		rel, relErr := filepath.Rel(dir, name)
		out = append(out, entry{name: filepath.ToSlash(rel), content: content})
		return errors.Join(err, relErr)
	})
	return out, err
}

func (r *release) write(name string, content []byte) error {
	r.files[name] = content
	return errors.Join(os.MkdirAll(r.out, 0o755), os.WriteFile(filepath.Join(r.out, name), content, 0o644))
}

//go:embed krew.yaml.tmpl
var krewTemplate string

// krew writes the manifest of the kubectl plugin. It needs a released version and an address to download from.
func (r *release) krew(stdout io.Writer) error {
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(r.version) || r.url == "" {
		_, err := fmt.Fprintln(stdout, "no krew manifest: it needs a version such as v0.2.0 and RELEASES=URL")
		return err
	}
	sums := map[string]string{}
	for name, content := range r.files {
		sums[name] = sum(content)
	}
	t, err := template.New("krew").Option("missingkey=error").Parse(krewTemplate)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, map[string]any{
		"Version": r.version, "URL": strings.TrimSuffix(r.url, "/"), "Sums": sums,
		"Archs": []string{"amd64", "arm64"},
	}); err != nil {
		return err
	}
	return r.write("tare.krew.yaml", b.Bytes())
}

// list writes the checksums and prints what was made.
func (r *release) list(stdout io.Writer) error {
	var names []string
	for name := range r.files {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	var sums, lines bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&sums, "%s  %s\n", sum(r.files[name]), name)
		fmt.Fprintf(&lines, "%s  %11d  %s\n", sum(r.files[name])[:16], len(r.files[name]), name)
	}
	if err := r.write("SHA256SUMS", sums.Bytes()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "%s%s: %d files and SHA256SUMS\n", lines.String(), r.out, len(names))
	return err
}

// sign signs the checksums, and so all files.
func (r *release) sign(ctx context.Context, stdout io.Writer) error {
	if r.key == "" {
		_, err := fmt.Fprintln(stdout, "not signed: that needs SIGN=FILE, an SSH key")
		return err
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-q", "-Y", "sign", "-n", "tare-release", "-f", r.key,
		filepath.Join(r.out, "SHA256SUMS"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("sign with %s: %w: %s", r.key, err, bytes.TrimSpace(out))
	}
	_, err := fmt.Fprintln(stdout, "signed: SHA256SUMS.sig")
	return err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// stage builds the binaries of the release, static and with nothing of this host in them, and the files that every
// archive holds.
func (r *release) stage(ctx context.Context, dir string) error {
	share := filepath.Join(dir, "share")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(share, "completions"), 0o755)); err != nil {
		return err
	}
	for _, arch := range []string{"amd64", "arm64"} {
		if err := r.compile(ctx, filepath.Join(dir, arch, "tare"), arch); err != nil {
			return err
		}
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(name)
		if err := errors.Join(err, os.WriteFile(filepath.Join(share, name), content, 0o644)); err != nil {
			return err
		}
	}
	tare, err := filepath.Abs(filepath.Join(dir, runtime.GOARCH, "tare"))
	if err != nil {
		return err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := exec.CommandContext(ctx, tare, "completion", shell).Output()
		to := filepath.Join(share, "completions", "tare."+shell)
		if err := errors.Join(err, os.WriteFile(to, script, 0o644)); err != nil {
			return fmt.Errorf("the completions of %s: %w", shell, err)
		}
	}
	return exec.CommandContext(ctx, tare, "man", filepath.Join(share, "man", "man1")).Run()
}

// compile builds tare for an architecture.
func (r *release) compile(ctx context.Context, to, arch string) error {
	const variable = " -X tare/internal/cli."
	ldflags := "-s -w" + variable + "version=" + r.version + variable + "commit=" + r.commit +
		variable + "date=" + r.date.Format(time.RFC3339)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-tags=kustomize_disable_go_plugin_support", "-ldflags", ldflags, "-o", to, "./cmd/tare")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// An entry is a file of an archive, or a folder if its name ends with "/".
type entry struct {
	name    string
	content []byte
	mode    int64 // 0 is 0644
	owner   int
}

// archive returns a tar of the entries, by name, that depends on nothing but them and the date.
func archive(entries []entry, date time.Time, zip bool) []byte {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: e.mode, Uid: e.owner, Gid: e.owner,
			ModTime: date, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		must(w.WriteHeader(h))
		_, err := w.Write(e.content)
		must(err)
	}
	must(w.Close())
	if zip {
		return compress(b.Bytes())
	}
	return b.Bytes()
}

// compress leaves the name and the time out of gzip's header.
func compress(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(err)
	_, err = w.Write(content)
	must(err)
	must(w.Close())
	return b.Bytes()
}

// must ends the program on errors that writing into memory does not have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
