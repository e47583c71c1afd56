package imagepull

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/design"
	"tare/internal/driver"
	"tare/internal/kit"
	"tare/internal/unit"
)

// A disk is the file system of a folder.
type disk struct {
	kind   string // "ext4"
	free   int64  // bytes that may be written
	inodes int64  // files that may be made; −1: not limited
}

// kinds are the file systems by the numbers that statfs(2) gives them.
var kinds = map[int64]string{
	unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
	unix.TMPFS_MAGIC:           "tmpfs (memory)",
	unix.OVERLAYFS_SUPER_MAGIC: "overlayfs", unix.NFS_SUPER_MAGIC: "nfs", unix.F2FS_SUPER_MAGIC: "f2fs",
	unix.RAMFS_MAGIC: "ramfs (memory)",
	unix.V9FS_MAGIC:  "9p", unix.FUSE_SUPER_MAGIC: "fuse", 0x2fc12fc1: "zfs",
}

// lookAt returns the file system of a folder.
func lookAt(dir string) (disk, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return disk{}, fmt.Errorf("dir: what file system %s is on: %w", dir, err)
	}
	//nolint:gosec,unconvert // the types differ between architectures
	d := disk{
		kind: kinds[int64(s.Type)], free: int64(s.Bavail) * int64(s.Bsize), inodes: int64(s.Ffree),
	}
	if d.kind == "" {
		d.kind = fmt.Sprintf("of type %#x", s.Type)
	}
	if s.Files == 0 { // btrfs and others have no table of inodes
		d.inodes = -1
	}
	return d, nil
}

// A need is what all treatments together write to the disk.
type need struct {
	bytes int64
	files int64
}

// The disk space of a record, in bytes, measured with Kubernetes v1.36.3 and rounded up: its head, and each secret in
// it.
const (
	recordBytes = 512
	secretBytes = 192
	// spareFiles are one treatment's folders, and the records that its operations add.
	spareFiles = 64
	leastBlock = 4096
)

// need estimates the disk space of the treatments' records.
func (s *Spec) need(treatments []design.Treatment) need {
	var n need
	for _, t := range kit.AtLeastOne(treatments) {
		p, err := s.plan(t)
		if err != nil || p.accessor == disabled {
			continue // there is nothing to read
		}
		each := int64(recordBytes + secretBytes*p.secrets)
		each = (each + leastBlock - 1) / leastBlock * leastBlock
		n.files += int64(p.records)
		n.bytes += int64(p.records) * each
	}
	return n
}

// size formats a number of bytes.
func size(bytes int64) string { return unit.Bytes(float64(bytes)) }

// judgeFolder checks that records can be written to their folder, and that there is room for them. It leaves nothing
// behind.
func (s *Spec) judgeFolder(treatments []design.Treatment) []area.Finding {
	dir := s.folder()
	const next = "name a folder that you may write to, with dir"
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return []area.Finding{area.Fault("dir", fmt.Errorf("dir: %w", err), next)}
	case !info.IsDir():
		return []area.Finding{area.Fault("dir", fmt.Errorf("dir: %s is no folder", dir), next)}
	}
	if err := tryWrite(dir); err != nil {
		return []area.Finding{area.Fault("dir", fmt.Errorf("dir: no record can be written there: %w", err), next)}
	}
	d, err := lookAt(dir)
	if err != nil {
		return []area.Finding{area.Fault("dir", err, next)}
	}
	return d.judge(dir, s.need(treatments), max(1, len(treatments)))
}

// judge compares what is needed with what is free.
func (d disk) judge(dir string, n need, arms int) (out []area.Finding) {
	const next = "free some, name a folder on another file system with dir, or take fewer records or treatments"
	if n.bytes > d.free {
		out = append(out, area.Fault("dir", fmt.Errorf("dir: %s has %s free, and the records of %s take about %s", dir,
			size(max(0, d.free)), unit.Count(arms, "treatment"), size(n.bytes)), next))
	}
	if files := n.files + int64(arms)*spareFiles; d.inodes >= 0 && files > d.inodes {
		out = append(out, area.Fault("dir", fmt.Errorf("dir: the file system of %s can hold %d more files, and the records "+
			"of %s are %d", dir, d.inodes, unit.Count(arms, "treatment"), n.files), next))
	}
	if d.kind == "nfs" || d.kind == "fuse" || d.kind == "9p" {
		out = append(out, area.Finding{
			Path: "dir", Severity: area.Warning,
			Message: fmt.Sprintf("dir: %s is on %s: what is measured of files is that, not a node's disk", dir, d.kind),
			Hint:    "name a folder on a local file system with dir",
		})
	}
	return out
}

// tryWrite writes a file of one block, and removes it.
func tryWrite(dir string) error {
	f, err := driver.Scratch(dir)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, leastBlock))
	return errors.Join(err, f.Close())
}
