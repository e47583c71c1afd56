package plane

import (
	"encoding/base64"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"
)

func written(t *testing.T) *secrets {
	t.Helper()
	s := &secrets{dir: filepath.Join(t.TempDir(), "s")}
	if err := s.write(time.Now()); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokens(t *testing.T) {
	s := written(t)
	file, err := os.Open(s.path(tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()       //nolint:errcheck // nothing that could be lost
	r := csv.NewReader(file) // as kube-apiserver reads it
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	groups, seen := map[string]string{}, map[string]bool{}
	for _, row := range rows {
		if len(row[0]) < 26 || seen[row[0]] || seen[row[2]] {
			t.Errorf("token or uid of %s is short, or another's", row[1])
		}
		seen[row[0]], seen[row[2]] = true, true
		groups[row[1]] = strings.Join(row[3:], ",")
	}
	want := map[string]string{
		AdminUser: masters, NodesUser: masters, CallerUser: "", "system:kube-scheduler": "",
		"system:kube-controller-manager": "",
	}
	if d := cmp.Diff(want, groups); d != "" {
		t.Error(d)
	}
	other := written(t)
	if other.admin == s.admin || other.caller == s.caller {
		t.Error("two planes have the same token")
	}
}

func TestKubeconfigs(t *testing.T) {
	s := written(t)
	if err := s.kubeconfigs("https://127.0.0.1:12345"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][2]string{
		adminFile:      {AdminUser, s.admin},
		schedulerFile:  {"system:kube-scheduler", s.scheduler},
		controllerFile: {"system:kube-controller-manager", s.controller},
	} {
		text, err := os.ReadFile(s.path(file))
		if err != nil {
			t.Fatal(err)
		}
		var got connection
		if err := yaml.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		var name string
		for _, c := range got.Contexts {
			if c.Name == got.Current {
				name = c.Context.User
			}
			if c.Context.Cluster != got.Clusters[0].Name {
				t.Errorf("%s: cluster %q is not there", file, c.Context.Cluster)
			}
		}
		if name != want[0] || got.Users[0].Name != name || got.Users[0].User.Token != want[1] {
			t.Errorf("%s is for %q with token %q, want %v", file, name, got.Users[0].User.Token, want)
		}
		ca, err := base64.StdEncoding.DecodeString(got.Clusters[0].Cluster.CA)
		if err != nil || !parse(t, ca).Equal(s.ca.cert) {
			t.Errorf("%s: not the plane's authority: %v", file, err)
		}
		if got.Clusters[0].Cluster.Server != "https://127.0.0.1:12345" || strings.Contains(string(text), "insecure") {
			t.Errorf("%s: %s", file, text)
		}
		if info, err := os.Stat(s.path(file)); err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: mode %v, %v", file, info.Mode(), err)
		}
	}
}

func TestSecretFolderIsNobodyElses(t *testing.T) {
	s := written(t)
	if err := (&secrets{dir: s.dir}).write(time.Now()); err == nil {
		t.Error("a folder that was there already was taken for one's own")
	}
	a, b := secretFolder(), secretFolder()
	if a == b || !isPlaneFolder(a) || filepath.Dir(a) != filepath.Dir(b) {
		t.Errorf("folders %q and %q", a, b)
	}
}
