// Package recordfile reads the files in which the kubelet's pull manager keeps its records. Upstream logs a file that
// it cannot read, and continues without it: the measured number of records would then differ from the one in the
// result.
package recordfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// The format that upstream writes since Kubernetes 1.35.
const (
	apiVersion = "kubelet.config.k8s.io/v1beta1"
	kind       = "ImagePulledRecord"
)

// Folders below the kubelet's folder.
const (
	Pulled  = "image_manager/pulled"  // a file for each image that was pulled
	Pulling = "image_manager/pulling" // a file for each image that is being pulled
)

// Name returns the file name for an image: by its reference, or in Pulling by its name.
func Name(ref string) string { return fmt.Sprintf("sha256-%x", sha256.Sum256([]byte(ref))) }

type record struct {
	Kind              string                `json:"kind"`
	APIVersion        string                `json:"apiVersion"`
	LastUpdatedTime   string                `json:"lastUpdatedTime"`
	ImageRef          string                `json:"imageRef"`
	CredentialMapping map[string]credential `json:"credentialMapping"`
}

type credential struct {
	KubernetesSecrets         []secret          `json:"kubernetesSecrets"`
	KubernetesServiceAccounts []json.RawMessage `json:"kubernetesServiceAccounts"`
	NodePodsAccessible        bool              `json:"nodePodsAccessible"`
}

type secret struct {
	UID            string `json:"uid"`
	Namespace      string `json:"namespace"`
	Name           string `json:"name"`
	CredentialHash string `json:"credentialHash"`
}

// Read returns the image reference of a record, and how many secrets it names. The error does not name the file.
func Read(text []byte) (ref string, secrets int, err error) {
	var r record
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields() // as strict as upstream's decoder
	if err := d.Decode(&r); err != nil {
		return "", 0, fmt.Errorf("is no record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", 0, errors.New("is no record: something follows it")
	}
	if r.APIVersion != apiVersion || r.Kind != kind {
		return "", 0, fmt.Errorf("is %q of %q, not %s of %s", r.Kind, r.APIVersion, kind, apiVersion)
	}
	for _, c := range r.CredentialMapping {
		secrets += len(c.KubernetesSecrets)
	}
	return r.ImageRef, secrets, nil
}

// Want is what a folder must contain.
type Want struct {
	Files   map[string]bool // the names of the records' files
	Secrets int             // in each
}

// Found is what it contains in comparison with Want.
type Found struct {
	Records int      // files that are the wanted records
	Left    []string // paths of files that interrupted calls left behind: temporary files, intents, and unwanted records
	// references of records that name more secrets than wanted, left by an interrupted call for a new namespace
	Changed []string
}

// Look reads all files below a kubelet's folder. The error names the first file that is damaged or missing.
func (w Want) Look(folder string) (Found, error) {
	var f Found
	if err := f.strangers(filepath.Join(folder, filepath.FromSlash(Pulling)), nil); err != nil {
		return Found{}, err
	}
	dir := filepath.Join(folder, filepath.FromSlash(Pulled))
	if err := f.strangers(dir, w.Files); err != nil {
		return Found{}, err
	}
	for name := range w.Files {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return Found{}, fmt.Errorf("a record is missing: %w", err)
		}
		ref, secrets, err := Read(text)
		switch {
		case err != nil:
			return Found{}, fmt.Errorf("record file %s %w", path, err)
		case Name(ref) != name:
			return Found{}, fmt.Errorf("record file %s is of another image, %q", path, ref)
		case secrets < w.Secrets:
			return Found{}, fmt.Errorf("record file %s holds %d secrets, want %d", path, secrets, w.Secrets)
		case secrets > w.Secrets:
			f.Changed = append(f.Changed, ref)
		}
		f.Records++
	}
	return f, nil
}

// strangers adds the entries of dir that are not among these names. A missing folder is not an error here: its files
// are reported as missing later.
func (f *Found) strangers(dir string, names map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("list the records: %w", err)
	}
	for _, e := range entries {
		if names[e.Name()] {
			continue
		}
		if !strings.HasPrefix(e.Name(), "sha256-") {
			return fmt.Errorf("%s is no file of the pull manager's", filepath.Join(dir, e.Name()))
		}
		f.Left = append(f.Left, filepath.Join(dir, e.Name()))
	}
	return nil
}

// Count returns the number of records that upstream would count in a kubelet's folder: it counts all files at each
// write.
func Count(folder string) (int, error) {
	entries, err := os.ReadDir(filepath.Join(folder, filepath.FromSlash(Pulled)))
	if err != nil {
		return 0, fmt.Errorf("count the records: %w", err)
	}
	n := 0
	for _, e := range entries {
		if !e.IsDir() && strings.HasPrefix(e.Name(), "sha256-") && !strings.HasSuffix(e.Name(), ".tmp") {
			n++
		}
	}
	return n, nil
}
