package files

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// The tags of entries of an access control list, and two permissions.
const (
	ofOwner, ofUser, ofGroup, ofNamedGroup, ofMask, ofOthers = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20

	reads, writes = 5, 7
)

// A list is an access control list that lets all but the owner read, and one whom it names do something else.
type list struct {
	of       string // what it is about: what has it, or what is made in that
	tag, may uint16
	id       uint32
}

const (
	ofItself = "system.posix_acl_access"
	ofHeirs  = "system.posix_acl_default"
)

// set gives a folder the list.
func (l list) set(t *testing.T, path string) {
	t.Helper()
	const none = 1<<32 - 1
	text := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []list{
		{tag: ofOwner, may: writes, id: none},
		{tag: ofUser, may: reads, id: 1},
		{tag: ofGroup, may: reads, id: none},
		{tag: ofNamedGroup, may: reads, id: 1},
		{tag: ofMask, may: writes, id: none},
		{tag: ofOthers, may: reads, id: none},
	} {
		if e.tag == l.tag {
			e.may, e.id = l.may, l.id
		}
		text = binary.LittleEndian.AppendUint16(text, e.tag)
		text = binary.LittleEndian.AppendUint16(text, e.may)
		text = binary.LittleEndian.AppendUint32(text, e.id)
	}
	err := unix.Setxattr(path, l.of, text, 0)
	if errors.Is(err, unix.ENOTSUP) {
		hosttest.Missing(t, "the file system of "+path+" has no access control lists", "a TMPDIR on ext4, xfs or btrfs")
	}
	must(t, err)
}

// TestWhoMayWrite: a group is nobody else if it is the private one of a person's and no access control list names
// another who may write.
func TestWhoMayWrite(t *testing.T) {
	hosttest.NeedsRoot(t)
	for name, c := range map[string]struct {
		user, group int
		mode        fs.FileMode
		list        list
		says        string // empty: nobody else may write
	}{
		"nobody's":                 {1000, 7, 0o755, list{}, ""},
		"of all":                   {1000, 1000, 0o757, list{}, "chmod go-w"},
		"of a private group":       {1000, 1000, 0o775, list{}, ""},
		"of another group":         {1000, 1001, 0o775, list{}, "the group 1001: chmod go-w"},
		"of root's group":          {0, 0, 0o775, list{}, "the group 0: chmod go-w"},
		"of the group of a server": {33, 33, 0o775, list{}, "the group 33: chmod go-w"},
		"of a user in a list":      {1000, 1000, 0o775, list{ofItself, ofUser, writes, 1001}, "setfacl -b"},
		"of a group in a list":     {1000, 1000, 0o775, list{ofItself, ofNamedGroup, writes, 1000}, "setfacl -b"},
		"of the owner in a list":   {1000, 1000, 0o775, list{ofItself, ofUser, writes, 1000}, ""},
		"of readers in a list":     {1000, 1000, 0o775, list{ofItself, ofUser, reads, 1001}, ""},
		"of one who is masked":     {1000, 1000, 0o755, list{ofItself, ofUser, writes, 1001}, ""},
		"of heirs only":            {1000, 1000, 0o775, list{ofHeirs, ofUser, writes, 1001}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if must(t, os.Chown(dir, c.user, c.group)); c.list.of != "" {
				c.list.set(t, dir)
			}
			must(t, os.Chmod(dir, c.mode)) // which sets the mask of a list, too
			err := Replaceable(dir)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
			must(t, os.Chmod(dir, c.mode|fs.ModeSticky), Replaceable(dir))
		})
	}
}

// TestHeirsOfAList: what is made below a folder whose list is inherited lets nobody write whom that names.
func TestHeirsOfAList(t *testing.T) {
	dir := t.TempDir()
	list{ofHeirs, ofUser, writes, nobody}.set(t, dir)
	f, err := Make(dir + "/made/below")
	must(t, err)
	defer f.Close() //nolint:errcheck // nothing to lose
	must(t, f.Write("file", []byte("text")), MakeForAll(dir+"/for/all"), Save(dir+"/saved", text), f.Create("new", nil))
	appended, err := ForAppending(dir + "/appended")
	must(t, err, appended.Close())
	program := f.Join("program")
	must(t, WriteProgram(program, nil))
	for _, path := range []string{
		dir + "/made", dir + "/made/below", dir + "/for/all", dir + "/saved", dir + "/appended", f.Join("file"),
		f.Join("new"), program,
	} {
		if is, err := os.Stat(path); err != nil || is.Mode()&0o022 != 0 {
			t.Errorf("%s: %v, %v", path, is.Mode(), err)
		}
	}
	must(t, Trusted(dir+"/made/below"))
}
