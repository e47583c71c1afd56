package own

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"tare/areas/bundle"
	"tare/internal/files"
)

// kustomized is the folder that is built: of a bundle that is a kustomization.yaml, its folder; of a folder, itself if
// its kustomization, or one that it names, changes what it lists, or lists what is outside. Otherwise it is "", and the
// files are read as they stand.
func kustomized(from string) string {
	at, _ := listed(from)
	return at
}

// listed is that folder, or, where all files are read although a kustomization lists some, these.
func listed(from string) (at string, names map[string]bool) {
	isFolder, err := bundle.IsFolder(from)
	switch {
	case err != nil: // the caller says why
		return "", nil
	case !isFolder && slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(from)):
		return filepath.Dir(from), nil
	case !isFolder:
		return "", nil
	}
	g, names := newGathered(from, from), map[string]bool{}
	switch only := g.lists(from, ".", names); {
	case len(g.Texts) == 0: // none that can be read
		return "", nil
	case !only:
		return from, nil
	}
	return "", names
}

// lists reports whether the kustomization of a folder within one, and those that it names, only list files that are
// read without it, too, and adds these. A folder without one that can be read lists none.
func (g *gathered) lists(root, at string, names map[string]bool) bool {
	k, file, err := g.kustomization(filepath.Join(root, at))
	if err != nil {
		return g.Texts[file] == nil
	}
	return onlyLists(k) && !slices.ContainsFunc(k.Resources, func(name string) bool {
		name = filepath.Join(at, name)
		seen := names[name]
		names[name] = true
		if g.isFolder(filepath.Join(root, name)) {
			return !seen && !g.lists(root, name, names)
		}
		return !isObjects(name)
	})
}

// onlyLists reports whether a kustomization does nothing but list files and folders inside its own.
func onlyLists(k *types.Kustomization) bool {
	rest := *k
	rest.TypeMeta, rest.MetaData, rest.Resources = types.TypeMeta{}, nil, nil
	return reflect.DeepEqual(rest, types.Kustomization{}) && !slices.ContainsFunc(k.Resources, func(name string) bool {
		return !filepath.IsLocal(name) || checkLocal(name) != nil
	})
}

// Title is what places in a bundle are called by: those of a kustomization are lines of what it builds.
func Title(from string) string {
	if kustomized(from) == "" {
		return from
	}
	return from + built
}

// built marks places in what a kustomization builds.
const built = " (built)"

// Ext is the extension that a copy of a bundle has.
func Ext(from string) string {
	if kustomized(from) == "" {
		return filepath.Ext(from)
	}
	return ".yaml"
}

// Sum is the sum of a bundle: of a kustomization, that of what it is built of.
func Sum(from string) (string, error) {
	at := kustomized(from)
	if at == "" {
		return bundle.Sum(from)
	}
	g, err := gather(at)
	if err != nil {
		return "", err
	}
	return g.sum()
}

// mostVisits bounds how often folders are built: one that two others name is built twice, so that a few small files
// could ask for very much.
const mostVisits = 1000

// buildIt is what to do about a kustomization that tare does not build.
const buildIt = "build it (kubectl kustomize FOLDER > policies.yaml), and name that file"

// gathered are the files that a kustomization names, and those that its bases name.
type gathered struct {
	order
	top  string // nothing is read outside of it
	from *bundle.Reader
	size int // of the files, in bytes
}

func newGathered(folder, top string) *gathered {
	all := order{folder, map[string][]byte{}, map[string]int{}, mostSeconds}
	return &gathered{order: all, top: top, from: bundle.NewReader()}
}

// gather reads what a kustomization needs. Its bases are in its repository, or else in its folder: those of a stranger
// could be any folders of the user's.
func gather(folder string) (*gathered, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	g := newGathered(folder, files.Top(folder))
	_, err = g.folder(folder)
	return g, err
}

// folder reads the kustomization of a folder and what it names, and returns how many folders will be built for it.
func (g *gathered) folder(at string) (int, error) {
	if n, seen := g.Visits[at]; seen && n == 0 {
		return 0, fmt.Errorf("%s names itself, or one of its bases does", at)
	} else if seen {
		return n, nil
	}
	g.Visits[at] = 0
	k, file, err := g.kustomization(at)
	if err != nil {
		return 0, err
	}
	n := 1
	if err := refuse(k); err != nil {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	others, patches := named(k)
	operands := slices.Concat(k.Resources, k.Components)
	for _, name := range slices.Concat(others, operands) {
		if err := checkLocal(name); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	for _, patch := range patches {
		if err := checkEach(file, patch); err != nil {
			return 0, err
		}
	}
	for _, name := range operands {
		below := filepath.Join(at, name)
		if _, isIn := within(g.top, below); !isIn {
			return 0, fmt.Errorf("%s: %s is outside of %s: tare reads bases in the same repository of git, or without one "+
				"below the folder that is named: %s", file, below, g.top, buildIt)
		}
		if g.isFolder(below) {
			visits, err := g.folder(below)
			if err != nil {
				return 0, err
			}
			if n += visits; n > mostVisits {
				return 0, fmt.Errorf("%s: more than %d folders would be built for it", file, mostVisits)
			}
			continue
		}
		others = append(others, name)
	}
	for _, name := range others {
		if err := g.file(at, name); err != nil {
			return 0, fmt.Errorf("%s: %w", file, err)
		}
	}
	g.Visits[at] = n
	return n, nil
}

// kustomization reads the one of a folder.
func (g *gathered) kustomization(at string) (*types.Kustomization, string, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		file := filepath.Join(at, name)
		if err := g.file(at, name); errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, file, err
		}
		k := &types.Kustomization{}
		if err := k.Unmarshal(g.Texts[file]); err != nil {
			return nil, file, fmt.Errorf("%s: %w", file, err)
		}
		k.FixKustomization()
		return k, file, nil
	}
	return nil, at, fmt.Errorf("%s: a folder without a kustomization.yaml", at)
}

// refuse refuses what would run programs, or read what is not gathered.
func refuse(k *types.Kustomization) error {
	var has []string
	for _, f := range []struct {
		name string
		used bool
	}{
		{"generators", len(k.Generators) > 0},
		{"helmCharts", len(k.HelmCharts) > 0 || k.HelmGlobals != nil},
		{"transformers", len(k.Transformers) > 0},
		{"validators", len(k.Validators) > 0},
	} {
		if f.used {
			has = append(has, f.name)
		}
	}
	if len(has) == 0 {
		return nil
	}
	return fmt.Errorf("it has %s, which tare does not carry out: %s", strings.Join(has, ", "), buildIt)
}

// named are the files that a kustomization names for anything but objects, and the patches that stand in it.
func named(k *types.Kustomization) (files, patches []string) {
	files = slices.Concat(k.Crds, k.Configurations)
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // people's files have it
		files, patches = append(files, p.Path), append(patches, p.Patch)
	}
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // people's files have it
		if text := string(p); strings.ContainsAny(strings.TrimSpace(text), "\n{") {
			patches = append(patches, text)
		} else {
			files = append(files, text)
		}
	}
	for _, r := range k.Replacements {
		files = append(files, r.Path)
	}
	files = append(files, k.OpenAPI["path"])
	for i := range k.ConfigMapGenerator {
		files = append(files, sources(&k.ConfigMapGenerator[i].KvPairSources)...)
	}
	for i := range k.SecretGenerator {
		files = append(files, sources(&k.SecretGenerator[i].KvPairSources)...)
	}
	return slices.DeleteFunc(files, func(name string) bool { return name == "" }), patches
}

// sources are the files of a generator of a ConfigMap or a Secret.
func sources(from *types.KvPairSources) (out []string) {
	for _, f := range from.FileSources {
		if _, path, named := strings.Cut(f, "="); named {
			f = path
		}
		out = append(out, f)
	}
	return append(out, from.EnvSources...)
}

// isFolder reports whether a folder is at a path. Why nothing can be opened there, who reads it as a file says.
func (g *gathered) isFolder(path string) bool {
	name, _ := within(g.top, path)
	f, err := files.Below(g.top, name)
	if err != nil {
		return false
	}
	is, err := f.Stat()
	return f.Close() == nil && err == nil && is.IsDir()
}

// within returns a path relative to a folder, and whether it is in that.
func within(folder, path string) (name string, isIn bool) {
	name, err := filepath.Rel(folder, path)
	return name, err == nil && filepath.IsLocal(name)
}

// file reads a file of a folder.
func (g *gathered) file(at, name string) error {
	path := filepath.Join(at, name)
	if g.Texts[path] != nil {
		return nil
	}
	switch local, isIn := within(at, path); {
	case !isIn:
		return fmt.Errorf("%s is outside of %s, and kustomize reads only files that are in it", path, at)
	case bundle.Hidden(local): // such as the .env of whoever tries a stranger's kustomization
		return fmt.Errorf("%s is hidden, and the record and reports would show what is in it: %s", path, buildIt)
	}
	inside, _ := within(g.top, path)
	text, err := g.from.Read(g.top, inside)
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if g.size += len(text); g.size > mostText {
		return fmt.Errorf("%s: with it, what the kustomization names has more than %d MiB", path, mostText>>20)
	}
	if err := checkEach(path, string(text)); err != nil {
		return err
	}
	g.Texts[path] = append([]byte{}, text...) // never nil
	return nil
}

// checkEach refuses documents that kustomize, which writes out aliases, would make endless.
func checkEach(file, text string) error {
	for _, d := range documents(file, text) {
		if err := d.checkAliases(); err != nil {
			return d.errorf("%w", err)
		}
	}
	return nil
}

// checkLocal refuses what kustomize would take for the address of a repository or of a file of a server.
func checkLocal(name string) error {
	first, _, _ := strings.Cut(name, "/")
	if u, err := url.Parse(name); (err != nil || u.Scheme == "") && !strings.ContainsAny(first, ":@?") &&
		!strings.HasPrefix(strings.ToLower(first), "github.com") {
		return nil
	}
	return fmt.Errorf("%q is not a path of this host, or could be the address of another: fetch it, and name it by a "+
		"path that begins with ./ or ../", name)
}

// sum is the SHA-256 of the files' names, relative to the folder that is built, and of their contents.
func (g *gathered) sum() (string, error) {
	return bundle.SumOf(func(do func(name string, text []byte) error) error {
		for _, path := range slices.Sorted(maps.Keys(g.Texts)) {
			name, err := filepath.Rel(g.Root, path)
			if err == nil {
				err = do(name, g.Texts[path])
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// kustomizing is held while something is built: each takes much memory. What was built is kept by the sums of what was
// gathered.
var kustomizing = struct {
	sync.Mutex
	built map[string][]byte
}{built: map[string][]byte{}}

// build returns the objects that the kustomization of a folder makes, as one text.
func build(folder string) ([]byte, error) {
	g, err := gather(folder)
	if err != nil {
		return nil, err
	}
	sum, err := g.sum()
	if err != nil {
		return nil, err
	}
	kustomizing.Lock()
	defer kustomizing.Unlock()
	if text, done := kustomizing.built[sum]; done {
		return text, nil
	}
	text, err := g.build()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	kustomizing.built[sum] = text
	return text, nil
}
