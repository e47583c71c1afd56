package cli

import (
	"runtime/debug"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	t.Parallel()
	const (
		hash     = "0123456789abcdef0123456789abcdef01234567"
		other    = "fedcba9876543210fedcba9876543210fedcba98"
		unpacked = hash + " 2026-11-23T15:16:00+02:00 v0.2.0-3-g0123456"
		utc      = "2026-11-23T13:16:00Z"
	)
	repository := func(revision, when, modified string) []debug.BuildSetting {
		return []debug.BuildSetting{
			{Key: "vcs", Value: "git"},
			{Key: "vcs.revision", Value: revision},
			{Key: "vcs.time", Value: when},
			{Key: "vcs.modified", Value: modified},
		}
	}
	for name, c := range map[string]struct {
		linked   origin
		archive  string
		module   string
		settings []debug.BuildSetting
		want     origin
	}{
		"nothing": {want: origin{}},
		"devel":   {module: "(devel)", want: origin{}},
		"linker": {
			linked: origin{"v0.2.0", hash, utc}, module: "(devel)", settings: repository(other, "2020-01-01T00:00:00Z", "true"),
			want: origin{"v0.2.0", hash, utc},
		},
		"linker knows the version only": {
			linked: origin{version: "v0.2.0"}, module: "v0.0.0-20261123131600-0123456789ab",
			settings: repository(hash, utc, "false"), want: origin{"v0.2.0", hash, utc},
		},
		"repository": {
			module: "v0.0.0-20261123131600-0123456789ab", settings: repository(hash, utc, "false"),
			want: origin{"v0.0.0-20261123131600-0123456789ab", hash, utc},
		},
		"modified repository": {
			module: "v0.2.0+dirty", settings: repository(hash, utc, "true"), want: origin{"v0.2.0+dirty", hash + "+dirty", utc},
		},
		"go install of a tag": {module: "v0.2.0", want: origin{version: "v0.2.0"}},
		"go install of a commit": {
			module: "v0.2.1-0.20261123131600-0123456789ab",
			want:   origin{"v0.2.1-0.20261123131600-0123456789ab", "0123456789ab", utc},
		},
		"a tag that only looks like a commit": {module: "v0.2.0-rc.1", want: origin{version: "v0.2.0-rc.1"}},
		"archive":                             {archive: unpacked, want: origin{"v0.2.0-3-g0123456", hash, utc}},
		"archive without a tag": {
			archive: hash + " 2026-11-23T13:16:00Z ", want: origin{"0123456789ab", hash, utc},
		},
		"archive of an old git": {
			archive: hash + " 2026-11-23T13:16:00Z %(describe:tags=true)", want: origin{"0123456789ab", hash, utc},
		},
		"archive in another repository": {
			archive: unpacked, module: "v9.9.9", settings: repository(other, "2020-01-01T00:00:00Z", "false"),
			want: origin{"v0.2.0-3-g0123456", hash, utc},
		},
		"no archive": {archive: "$Format:%H %cI %(describe:tags=true)$", module: "(devel)", want: origin{}},
		"a date that is none": {
			archive: hash + " yesterday v0.2.0", want: origin{version: "v0.2.0", commit: hash},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := &debug.BuildInfo{Main: debug.Module{Path: "tare", Version: c.module}, Settings: c.settings}
			if got := describeBuild(c.linked, c.archive, info); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
