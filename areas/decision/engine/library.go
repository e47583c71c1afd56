package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"tare/internal/files"
)

const (
	// Repository is the environment variable that names a mirror of Maven Central:
	// "https://nexus.example/repository/maven-central".
	Repository = "TARE_MAVEN_REPOSITORY"
	// central is Maven Central.
	central = "https://repo.maven.apache.org/maven2"
	// fetchWithin bounds the transfer of one library on a slow network.
	fetchWithin = 5 * time.Minute
	// mostLibrary bounds a library, in bytes; the largest has 6 MB.
	mostLibrary = 64 << 20
)

// A library is a jar with a pinned content.
type library struct {
	path string // in a Maven repository: "org/slf4j/slf4j-api/2.0.20/slf4j-api-2.0.20.jar"
	sum  string // SHA-256, hexadecimal
}

func (l library) name() string { return path.Base(l.path) }

// libraries lists those of an engine, from xacml/KIND.sha256.
func libraries(k Kind) ([]library, error) {
	text, err := xacmlSources.ReadFile(pinsOf(k))
	if err != nil {
		return nil, err
	}
	var all []library
	for line := range strings.Lines(string(text)) {
		sum, file, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok || !filepath.IsLocal(file) {
			return nil, fmt.Errorf("%s: want a SHA-256 sum and a path, not %q", pinsOf(k), line)
		}
		all = append(all, library{path: file, sum: sum})
	}
	return all, nil
}

// pinsOf is the file with the libraries of an engine, below this package's folder.
func pinsOf(k Kind) string { return "xacml/" + string(k) + ".sha256" }

// A source is where libraries come from. A library is used only if it matches its pinned checksum.
type source struct {
	local  string // Maven's folder of this user, in which a library may be already; empty: there is none
	remote string // URL of a repository
	client *http.Client
}

func (h Host) source() source {
	s := source{remote: central, client: &http.Client{Timeout: fetchWithin}}
	if home, ok := h.Getenv("HOME"); ok && filepath.IsAbs(home) {
		s.local = filepath.Join(home, ".m2", "repository")
	}
	if mirror, ok := h.Getenv(Repository); ok && mirror != "" {
		s.remote = mirror
	}
	return s
}

// unreachable says that a library could not be fetched.
type unreachable struct {
	url string
	err error
}

// Error implements error.
func (u *unreachable) Error() string { return u.url + ": " + u.err.Error() }

// put writes a library to dir after checking its checksum. The error is an *unreachable, or says that the content
// differs.
func (s source) put(ctx context.Context, l library, dir string) error {
	text, err := files.Read(filepath.Join(s.local, filepath.FromSlash(l.path)), mostLibrary)
	if s.local == "" || err != nil || sumOf(text) != l.sum { // there is none, or another one
		if text, err = s.fetch(ctx, l); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, l.name()), text, 0o600)
}

// fetch gets a library from the repository, and checks it.
func (s source) fetch(ctx context.Context, l library) ([]byte, error) {
	at, err := url.Parse(s.remote)
	if err != nil {
		// the error could hold a password
		return nil, fmt.Errorf("the repository that %s names is no URL; set it to one, or unset it", Repository)
	}
	at = at.JoinPath(l.path)
	text, err := s.get(ctx, at.String())
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok { // it repeats the URL
			err = failed.Err
		}
		return nil, &unreachable{at.Redacted(), err}
	}
	if got := sumOf(text); got != l.sum {
		return nil, fmt.Errorf("%s is not what tare pins: its SHA-256 is %s, and %s is wanted; look for what answers "+
			"instead of Maven Central", at.Redacted(), got, l.sum)
	}
	return text, nil
}

func (s source) get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	if res.StatusCode != http.StatusOK {
		return nil, errors.New(res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, mostLibrary+1))
	if err == nil && len(text) > mostLibrary {
		err = fmt.Errorf("more than %d bytes", mostLibrary)
	}
	return text, err
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
