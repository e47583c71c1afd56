package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// version, commit and date are set by the linker (Makefile).
var version, commit, date string

// An origin is what is known of the sources of this program; a field is "" if it is not known.
type origin struct{ version, commit, date string }

// String returns the line that "tare version" prints.
func (b origin) String() string {
	return fmt.Sprintf("tare %s (commit %s, %s, %s %s/%s)", cmp.Or(b.version, unknown), cmp.Or(b.commit, unknown),
		cmp.Or(b.date, "date "+unknown), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

const unknown = "unknown"

// built describes this program.
func built() origin {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return describeBuild(origin{version, commit, date}, archived, info)
}

// buildVersion returns version and commit of this program for records.
func buildVersion() (v, revision string) {
	b := built()
	return cmp.Or(b.version, unknown), cmp.Or(b.commit, unknown)
}

// describeBuild takes each field from the first source that knows it: the linker, the archive that the sources came
// in, the repository that they were built in, the version of the module. An archive comes before a repository, because
// that may be another project's, into which the archive was unpacked.
func describeBuild(linked origin, archive string, info *debug.BuildInfo) origin {
	b := linked
	for _, from := range []origin{fromArchive(archive), fromRepository(info), fromModule(info.Main.Version)} {
		if b.commit != "" && from.commit != "" && !sameCommit(b.commit, from.commit) {
			continue // another project's
		}
		b.version = cmp.Or(b.version, from.version)
		b.commit = cmp.Or(b.commit, from.commit)
		b.date = cmp.Or(b.date, from.date)
	}
	if b.version == "" {
		b.version = b.commit[:min(12, len(b.commit))]
	}
	return b
}

// sameCommit reports whether one is the other or its beginning.
func sameCommit(a, b string) bool {
	a, b = strings.TrimSuffix(a, dirty), strings.TrimSuffix(b, dirty)
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// dirty marks sources that were changed after the commit, as Go's versions do.
const dirty = "+dirty"

// fromArchive reads what "git archive" wrote. Old versions of git leave placeholders that they do not know.
func fromArchive(text string) origin {
	hash, rest, _ := strings.Cut(text, " ")
	day, tag, _ := strings.Cut(rest, " ")
	if strings.HasPrefix(text, "$Format") || hash == "" {
		return origin{}
	}
	if strings.Contains(tag, "%") {
		tag = ""
	}
	return origin{version: tag, commit: hash, date: inUTC(time.RFC3339, day)}
}

// fromRepository reads what the go command says of the repository that it built in.
func fromRepository(info *debug.BuildInfo) (b origin) {
	modified := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			b.commit = s.Value
		case s.Key == "vcs.time":
			b.date = inUTC(time.RFC3339, s.Value)
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = dirty
		}
	}
	if b.commit != "" {
		b.commit += modified
	}
	return b
}

// pseudo matches the time and the commit in the version of a module without a tag.
var pseudo = regexp.MustCompile(`[-.](\d{14})-([0-9a-f]{12})(\+dirty)?$`)

// fromModule reads the module's version: that of "go install module@version", or what the go command makes of the
// repository.
func fromModule(v string) origin {
	if v == "(devel)" {
		return origin{}
	}
	b := origin{version: v}
	if m := pseudo.FindStringSubmatch(v); m != nil {
		b.commit, b.date = m[2]+m[3], inUTC("20060102150405", m[1])
	}
	return b
}

// inUTC returns the time in UTC, or "" if it is not one in that layout.
func inUTC(layout, text string) string {
	t, err := time.Parse(layout, text)
	if err != nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
