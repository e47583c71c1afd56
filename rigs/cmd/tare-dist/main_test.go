package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

var when = time.Date(2026, 11, 23, 13, 16, 0, 0, time.UTC)

func testRelease(t *testing.T) *release {
	t.Helper()
	return &release{
		version: "v0.2.0", commit: "0123456789ab", date: when, url: "https://example.org/v0.2.0/", out: t.TempDir(),
		files: map[string][]byte{},
	}
}

func TestArchiveDependsOnItsEntriesOnly(t *testing.T) {
	t.Parallel()
	entries := []entry{{name: "b", content: []byte("two"), mode: 0o755}, {name: "a/", mode: 0o755}, {name: "a/c"}}
	first := archive(entries, when, true)
	entries[0], entries[2] = entries[2], entries[0]
	if !bytes.Equal(first, archive(entries, when, true)) {
		t.Error("another order of the entries gives other bytes")
	}
	var got []string
	for _, h := range headers(t, first) {
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "" || !h.ModTime.Equal(when) {
			t.Errorf("%s: owner %d:%d %q, time %v", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
	}
	if want := "drwxr-xr-x a/,-rw-r--r-- a/c,-rwxr-xr-x b"; strings.Join(got, ",") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func headers(t *testing.T, zipped []byte) (out []*tar.Header) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, h)
	}
}

// TestImageHoldsWhatItNames walks the image from its index to the layers: every digest and size must be that of a blob.
func TestImageHoldsWhatItNames(t *testing.T) {
	t.Parallel()
	blobs := map[string][]byte{}
	image := testRelease(t).image(map[string][]byte{"amd64": []byte("one"), "arm64": []byte("two")})
	r := tar.NewReader(bytes.NewReader(image))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if blobs[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	type node struct {
		Manifests    []descriptor
		Layers       []descriptor
		Config       json.RawMessage
		Architecture string
		Rootfs       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	read := func(b []byte) (n node) {
		if err := json.Unmarshal(b, &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	fetch := func(d descriptor) []byte {
		b, ok := blobs["blobs/sha256/"+strings.TrimPrefix(d.Digest, "sha256:")]
		if !ok || len(b) != d.Size || "sha256:"+sum(b) != d.Digest {
			t.Fatalf("%+v is a blob of %d bytes, present: %t", d, len(b), ok)
		}
		return b
	}
	top := read(blobs["index.json"]).Manifests
	if len(top) != 1 || top[0].Annotations["org.opencontainers.image.ref.name"] != "v0.2.0" {
		t.Fatalf("index.json lists %+v", top)
	}
	var archs []string
	for _, d := range read(fetch(top[0])).Manifests {
		m := read(fetch(d))
		var config descriptor
		if err := json.Unmarshal(m.Config, &config); err != nil {
			t.Fatal(err)
		}
		c := read(fetch(config))
		layer := fetch(m.Layers[0])
		z, err := gzip.NewReader(bytes.NewReader(layer))
		if err != nil {
			t.Fatal(err)
		}
		files, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		if c.Architecture != d.Platform.Architecture || c.Rootfs.DiffIDs[0] != "sha256:"+sum(files) {
			t.Errorf("config %+v does not describe %s with its layer", c, d.Platform.Architecture)
		}
		if got := headers(t, layer); got[0].Name != "tare" || got[0].Mode != 0o755 || got[2].Uid != nobody {
			t.Errorf("layer holds %+v", got)
		}
		archs = append(archs, c.Architecture)
	}
	if strings.Join(archs, " ") != "amd64 arm64" {
		t.Errorf("architectures %v", archs)
	}
}

func TestBill(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.org/m", Version: "v1.2.3", Sum: "h1:x="},
	}}
	r := testRelease(t)
	var got struct {
		SerialNumber string
		Metadata     struct {
			Timestamp string
			Component struct{ Hashes []struct{ Content string } }
		}
		Components []struct{ Purl, Version string }
	}
	if err := json.Unmarshal(r.bill(info, []byte("binary")), &got); err != nil {
		t.Fatal(err)
	}
	if got.Metadata.Timestamp != "2026-11-23T13:16:00Z" ||
		got.Metadata.Component.Hashes[0].Content != sum([]byte("binary")) {
		t.Errorf("metadata %+v", got.Metadata)
	}
	if len(got.Components) != 2 || got.Components[0].Purl != "pkg:golang/std@1.26.8" ||
		got.Components[1].Purl != "pkg:golang/example.org/m@v1.2.3" {
		t.Errorf("components %+v", got.Components)
	}
	if bytes.Equal(r.bill(info, []byte("binary")), r.bill(info, []byte("other"))) || len(got.SerialNumber) != 45 {
		t.Errorf("serial number %s", got.SerialNumber)
	}
}

func TestKrew(t *testing.T) {
	t.Parallel()
	r := testRelease(t)
	for _, arch := range []string{"amd64", "arm64"} {
		r.files["tare-v0.2.0-linux-"+arch+".tar.gz"] = []byte(arch)
	}
	var said bytes.Buffer
	if err := errors.Join(r.krew(&said), r.list(&said)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector    struct{ MatchLabels map[string]string }
				URI, Sha256 string
			}
		}
	}
	if err := yaml.Unmarshal(r.files["tare.krew.yaml"], &got); err != nil {
		t.Fatal(err)
	}
	p := got.Spec.Platforms
	if got.Spec.Version != "v0.2.0" || len(p) != 2 || p[1].Sha256 != sum([]byte("arm64")) ||
		p[1].URI != "https://example.org/v0.2.0/tare-v0.2.0-linux-arm64.tar.gz" {
		t.Errorf("manifest %+v", got)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil || strings.Count(string(sums), "\n") != 3 ||
		!strings.Contains(string(sums), sum([]byte("amd64"))+"  tare-v0.2.0-linux-amd64.tar.gz\n") {
		t.Errorf("%v: %s", err, sums)
	}

	r = testRelease(t)
	r.version = "0123456-dirty"
	said.Reset()
	if err := r.krew(&said); err != nil || len(r.files) != 0 || !strings.Contains(said.String(), "no krew manifest") {
		t.Errorf("%v, %q, %d files", err, said.String(), len(r.files))
	}
}

// TestRefusesOtherBinaries: what is packed must be a static binary for the architecture that it is packed for.
func TestRefusesOtherBinaries(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := modulesOf(self, "mips"); err == nil || !strings.Contains(err.Error(), "was built with") {
		t.Errorf("a binary for this host as one for mips: %v", err)
	}
	if _, err := modulesOf("main_test.go", "amd64"); err == nil {
		t.Error("a file that is no binary has modules")
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		hosttest.Missing(t, "ssh-keygen is not installed", "apt-get install openssh-client")
	}
	r := testRelease(t)
	r.key = filepath.Join(t.TempDir(), "key")
	keygen := func(stdin string, args ...string) error {
		cmd := exec.CommandContext(t.Context(), "ssh-keygen", args...)
		cmd.Stdin = strings.NewReader(stdin)
		return cmd.Run()
	}
	if err := r.sign(t.Context(), io.Discard); err == nil {
		t.Error("a release is signed without a key")
	}
	err := errors.Join(keygen("", "-q", "-t", "ed25519", "-N", "", "-f", r.key), r.write("a", []byte("1")),
		r.list(io.Discard), r.sign(t.Context(), io.Discard))
	public, readErr := os.ReadFile(r.key + ".pub")
	signers := filepath.Join(t.TempDir(), "signers")
	err = errors.Join(err, readErr, os.WriteFile(signers, append([]byte("release "), public...), 0o600))
	sums, readErr := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	verify := []string{
		"-Y", "verify", "-f", signers, "-I", "release", "-n", "tare-release", "-s", filepath.Join(r.out, "SHA256SUMS.sig"),
	}
	if err := keygen(string(sums), verify...); err != nil {
		t.Errorf("the signature of the checksums: %v", err)
	}
	if err := keygen(string(sums)+"more", verify...); err == nil {
		t.Error("the signature holds for other checksums")
	}
}

// TestBuildsThatDiffer: a byte, a missing file and a further file are differences, whichever build has them.
func TestBuildsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"same", "SUMS", "x", ""},
		{"a byte", "SUMS", "y", "the two builds differ in SUMS"},
		{"a further file", "krew", "x", "krew: no such file"},
	} {
		a, b := t.TempDir(), t.TempDir()
		for name, text := range map[string]string{filepath.Join(a, "SUMS"): "x", filepath.Join(b, "SUMS"): "x"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(b, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{same(a, b), same(b, a)} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
		}
	}
}

func TestDirtySourcesAreNotChecked(t *testing.T) {
	r := &release{version: "v1-dirty"}
	if err := r.check(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "commit your changes") {
		t.Errorf("got %v", err)
	}
}
