package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"tare/areas/sandbox/apparmor"
)

// appFile is an AppArmor profile of the user's.
type appFile struct {
	path    string // as the experiment gives it
	file    *apparmor.File
	profile string // the one to use, of those in the file
	mode    apparmor.Mode
	opens   *opens
	// onlyServers says that no worker runs under the profile, so nothing is tried there.
	onlyServers bool
}

// profileMark separates the path of a file from the name of one of its profiles.
const profileMark = "#"

// readAppFile reads the level FILE or FILE#PROFILE.
func readAppFile(level string) (*appFile, error) {
	path, name := level, ""
	if _, err := os.Stat(level); err != nil {
		if i := strings.LastIndex(level, profileMark); i > 0 {
			path, name = level[:i], level[i+1:]
		}
	}
	file, err := appFiles.read(path)
	if err != nil {
		return nil, err
	}
	profile, err := file.Pick(name)
	if err != nil {
		return nil, fmt.Errorf("%w; write FILE%sNAME, such as %[3]s%[2]s%[4]s", err, profileMark, path, file.Profiles[0])
	}
	return &appFile{path: path, file: file, profile: profile, mode: apparmor.Enforce, opens: &opens{}}, nil
}

// appFileCache keeps what has been read of files that have not changed since: the parser takes a while.
type appFileCache struct {
	mu    sync.Mutex
	files map[string]*apparmor.File
}

var appFiles = appFileCache{files: map[string]*apparmor.File{}} //nolint:gochecknoglobals // a cache

func (c *appFileCache) read(path string) (*apparmor.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprint(whole, info.Size(), info.ModTime().UnixNano())
	if f := c.files[key]; f != nil {
		return f, nil
	}
	f, err := apparmor.ReadProfile(context.Background(), path) // it has a bound of its own
	if err == nil {
		c.files[key] = f
	}
	return f, err
}

// sum returns the SHA-256 of the file with what it includes, in hexadecimal digits.
func (a *appFile) sum() string {
	sum := sha256.Sum256([]byte(a.file.Text))
	return hex.EncodeToString(sum[:])
}

// complaining returns the profile in complain mode: what it does not allow is allowed and reported.
func (a *appFile) complaining() *appFile {
	c := *a
	c.mode = apparmor.Complain
	return &c
}

// install loads all profiles of the file into a policy namespace of the treatment, so that files with profiles of the
// same names can be compared.
func (a *appFile) install(ctx context.Context, p *Policy, h *host) error {
	namespace, err := h.appArmorNamespace(apparmor.Namespace(h.run + "-" + filepath.Base(p.Dir)))
	if err != nil {
		return err
	}
	loaded, err := apparmor.LoadFile(ctx, namespace, a.file, a.profile, a.mode)
	p.AppArmor, p.compiled = &loaded.Label, loaded.Compiled
	return err
}

// opens are the attempts to open files that prove a profile of the user's.
type opens struct {
	mu      sync.Mutex
	tried   []string // files that tare can open
	refused []string // of those, files that the first worker under the profile could not open
}

// prove opens files that this process, which nothing confines, can open. What the profile refused in the first worker
// it must refuse in all others.
func (o *opens) prove(x *proof, text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if x.demands != nil {
		for _, path := range o.refused {
			x.wantRefused(unix.EACCES, tryOpen, path)
		}
		return
	}
	first := o.tried == nil
	var tried, refused []string
	for _, path := range slices.Concat(provable, deniedFiles(text)) {
		if !canOpen(path) {
			continue
		}
		n, ok := x.errno(tryOpen, path)
		if !ok {
			return
		}
		tried = append(tried, path)
		if n == unix.EACCES {
			refused = append(refused, path)
		}
	}
	if first {
		o.tried, o.refused = tried, refused
	} else if !slices.Equal(refused, o.refused) {
		x.wrong = append(x.wrong, fmt.Sprintf("opening %q was refused, and in the first worker %q", refused, o.refused))
	}
}

func canOpen(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	return err == nil && f.Close() == nil
}

// denied finds the rules that refuse to read one file.
var denied = regexp.MustCompile(`(?m)\bdeny\s+(?:file\s+)?"?(/[^\s"*?{}\[\]@^\\]+)"?\s+[a-z]*r[a-z]*\s*,`)

// deniedFiles returns the regular files that rules of a profile refuse to read, at most a few.
func deniedFiles(text string) (out []string) {
	const most = 8
	for _, m := range denied.FindAllStringSubmatch(text, -1) {
		if len(out) < most && isFile(m[1]) && !slices.Contains(out, m[1]) && !slices.Contains(provable, m[1]) {
			out = append(out, m[1])
		}
	}
	return out
}

// describe says what the profile is, and what it cannot do.
func (a *appFile) describe() string {
	return fmt.Sprintf("the AppArmor profile %s of %s (SHA-256 with what it includes %.24s…), in a policy namespace of "+
		"the run: its rules about other processes (ptrace, signal, unix, dbus) refuse nothing that concerns processes "+
		"outside of that namespace", a.profile, a.path, a.sum())
}

// proved says what has proved the profile; it is empty until then.
func (a *appFile) proved() string {
	a.opens.mu.Lock()
	defer a.opens.mu.Unlock()
	switch tried, refused := a.opens.tried, a.opens.refused; {
	case len(refused) > 0:
		return fmt.Sprintf("the kernel says that the profile is in enforce mode, and it refuses to open %s",
			strings.Join(refused, ", "))
	case len(tried) > 0:
		return fmt.Sprintf("the kernel says that the profile is in enforce mode; no refusal proves it, since it refuses "+
			"none of what tare tried, which is opening %s", strings.Join(tried, ", "))
	case a.onlyServers:
		return "the kernel says that the profile is in enforce mode; no refusal proves it, since a server tries nothing"
	}
	return ""
}

// expressOwn returns an error if something else is given with a profile of the user's.
func (a *appFile) expressOwn(p Policy) error {
	switch {
	case p.Mode != "":
		return errors.New("mode: a profile of your own takes the place of a mode; leave one of them out")
	case p.Rules > 0 || p.Own != nil:
		return errors.New("rules: not with a profile of your own; add them to the profile")
	case p.Match > 0:
		return errors.New("match: not with a profile of your own")
	}
	return nil
}

// profileWatcher is the watcher of a profile in complain mode.
type profileWatcher struct {
	namespace string
	rules     *OwnRules // that the profile was made of; nil: it is the user's
	lost      int       // audit records
}

var _ watcher = (*profileWatcher)(nil)

// during implements watcher. The profile is that of one sample's processes, so it need not know which.
func (w *profileWatcher) during(ctx context.Context, _ string, do func() error) (out []string, err error) {
	o, err := apparmor.Observe(ctx, w.namespace)
	if err != nil {
		return nil, err
	}
	err = do()
	refusals, lost, stopped := o.Stop(context.WithoutCancel(ctx))
	w.lost += lost
	for _, r := range refusals {
		text := r.String()
		if act, ok := r.Act(); ok && w.rules != nil {
			text = w.rules.refusal(act)
		}
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out, errors.Join(err, stopped)
}

// missed implements watcher.
func (w *profileWatcher) missed() int { return w.lost }
