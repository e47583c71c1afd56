package probe

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tare/rigs/memtest"
)

const (
	unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	hybrid  = "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n" +
		"33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"34 31 0:31 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
		"35 31 0:32 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n" +
		"36 31 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

func TestGroupOf(t *testing.T) {
	dir := &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	for _, c := range []struct {
		name, mounts, self, target string
		dirs, want                 []string
	}{
		{
			"v2", unified, "0::/user.slice/shell.scope\n", "0::/system.slice/pdp.service\n",
			[]string{"system.slice/pdp.service"},
			[]string{"/sys/fs/cgroup/system.slice/pdp.service"},
		},
		{"v2, the root group", unified, "0::/user.slice\n", "0::/\n", []string{""}, nil},
		{
			"v2, the group that we are in", unified, "0::/user.slice/shell.scope\n", "0::/user.slice/shell.scope\n",
			[]string{"user.slice/shell.scope"},
			nil,
		},
		{"v2, a group around ours", unified, "0::/user.slice/shell.scope\n", "0::/user.slice\n", []string{"user.slice"}, nil},
		{
			"v2, beside ours, with our name as the beginning of its", unified, "0::/a\n", "0::/ab\n",
			[]string{"ab"},
			[]string{"/sys/fs/cgroup/ab"},
		},
		{"v2, outside of what we see", unified, "0::/\n", "0::/../other\n", []string{"other"}, nil},
		{"v2, not mounted", "", "0::/a\n", "0::/b\n", []string{"b"}, nil},
		{"v2, removed", unified, "0::/a\n", "0::/b\n", nil, nil},
		{
			"v1 and v2 side by side", hybrid, "2:cpu,cpuacct:/\n1:name=systemd:/me\n0::/me\n",
			"4:pids:/pdp\n3:memory:/pdp\n2:cpu,cpuacct:/pdp\n1:name=systemd:/pdp\n0::/pdp\n",
			[]string{"cpu,cpuacct/pdp", "memory/pdp", "pids/pdp", "systemd/pdp", "unified/pdp"},
			[]string{"/sys/fs/cgroup/memory/pdp", "/sys/fs/cgroup/cpu,cpuacct/pdp", "/sys/fs/cgroup/unified/pdp"},
		},
		{
			"v1, one controller in the root group", hybrid, "", "3:memory:/pdp\n2:cpu,cpuacct:/\n",
			[]string{"cpu,cpuacct", "memory/pdp"},
			[]string{"/sys/fs/cgroup/memory/pdp"},
		},
		{
			"a part of the tree is mounted", "30 23 0:26 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"0::/docker/c1/me\n", "0::/docker/c1/pdp\n",
			[]string{"pdp"},
			[]string{"/sys/fs/cgroup/pdp"},
		},
		{
			"beside the part that is mounted", "30 23 0:26 /docker/c1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"0::/docker/c1/me\n", "0::/docker/c12/pdp\n",
			[]string{"pdp", "2/pdp"},
			nil,
		},
		{
			"a place with a space and a colon", strings.Replace(unified, "/sys/fs/cgroup", `/my\040groups`, 1),
			"0::/a\n", "0::/b:c\n",
			nil,
			[]string{"/my groups/b:c"},
		},
	} {
		m := fstest.MapFS{
			"proc/self/mountinfo": text(c.mounts),
			"proc/self/cgroup":    text(c.self),
			"proc/50/cgroup":      text(c.target),
			"my groups/b:c":       dir,
		}
		for _, d := range c.dirs {
			m[strings.TrimSuffix("sys/fs/cgroup/"+d, "/")] = dir
		}
		got, err := GroupOf(m, 50)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
	if _, err := GroupOf(fstest.MapFS{}, 50); !errors.Is(err, ErrGone) {
		t.Errorf("no process: %v, want ErrGone", err)
	}
}

// TestHybridGroupCountsOnce: v2's hierarchy counts the CPU time that v1's controller counts.
func TestHybridGroupCountsOnce(t *testing.T) {
	m := fstest.MapFS{
		"cpuacct/pdp/cpuacct.usage": text("1250000000\n"),
		"unified/pdp/cpu.stat":      text("usage_usec 9000000\nuser_usec 5\n"),
		"unified/pdp/cpu.pressure": text("some avg10=0.00 avg60=0.00 avg300=0.00 total=500000\nfull avg10=0.00 " +
			"avg60=0.00 avg300=0.00 total=1\n"),
		"unified/pdp/memory.pressure": text("some avg10=0.00 avg60=0.00 avg300=0.00 total=250000\n"),
	}
	list, err := Cgroup{Name: "pdp", Paths: []string{"/cpuacct/pdp", "/unified/pdp"}, Root: m}.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, s := range list {
		if _, twice := got[s.Metric]; twice {
			t.Errorf("%s twice", s.Metric)
		}
		got[s.Metric] = s.Value
	}
	want := map[string]float64{"cgroup_cpu": 1.25, "cgroup_pressure_cpu": 0.5, "cgroup_pressure_memory": 0.25}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzGroups(f *testing.F) {
	f.Add(hybrid, "3:memory:/pdp\n2:cpu,cpuacct:/a/../../b\n0::/../x\n")
	f.Add(unified, "0::/system.slice\n")
	f.Fuzz(func(t *testing.T, mounts, groups string) {
		defer memtest.Bound(t, len(mounts)+len(groups))()
		for _, m := range groupMounts(mounts) {
			if m.dir == "" || m.top == "" {
				t.Errorf("mount %+v", m)
			}
		}
		for _, d := range groupDirs(groups, groupMounts(mounts)) {
			if d == "" {
				t.Error("an empty directory")
			}
		}
	})
}
