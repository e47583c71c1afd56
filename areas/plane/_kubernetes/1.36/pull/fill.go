package pull

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/klog/v2"
	config "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/images/pullmanager"

	"tare/plane/driver"
	"tare/plane/recordfile"
)

// The folders in the one that tare names.
const (
	whole   = "kubelet" // the kubelet's folder with all records
	filling = "filling" // renamed to whole when it is complete
	little  = "little"  // where records are written
)

// littleHolds limits the records of a little folder: upstream counts all files of the folder at each write, so 10,000
// in one folder would take a minute.
const littleHolds = 100

// fill writes the records of these images with upstream's own accessor: all of them or none.
func fill(folder string, of []image, secrets []config.ImagePullSecret) (err error) {
	to := filepath.Join(folder, filling)
	from := filepath.Join(to, little)
	if err := os.RemoveAll(to); err != nil { // left by a process that was killed
		return unwritable(folder, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	if err := os.MkdirAll(filepath.Join(to, whole, filepath.FromSlash(recordfile.Pulled)), 0o700); err != nil {
		return unwritable(folder, err)
	}
	accessor, err := pullmanager.NewFSPullRecordsAccessor(klog.Logger{}, from)
	if err != nil {
		return unwritable(folder, err)
	}
	for i, m := range of {
		if err := accessor.WriteImagePulledRecord(klog.Logger{}, recordOf(m, secrets)); err != nil {
			return unwritable(folder, fmt.Errorf("%d of %d records are written: %w", i, len(of), err))
		}
		if (i+1)%littleHolds == 0 || i == len(of)-1 {
			if err := move(from, filepath.Join(to, whole)); err != nil {
				return unwritable(folder, err)
			}
		}
	}
	if err := os.Rename(filepath.Join(to, whole), filepath.Join(folder, whole)); err != nil {
		return unwritable(folder, err)
	}
	return nil
}

func move(from, to string) error {
	from, to = filepath.Join(from, filepath.FromSlash(recordfile.Pulled)),
		filepath.Join(to, filepath.FromSlash(recordfile.Pulled))
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// unwritable explains why the records cannot be written.
func unwritable(folder string, err error) error {
	return blame(folder, fmt.Errorf("write the records to %s: %w", folder, err))
}

// blame advises the user on an error of a folder that does not accept the records.
func blame(folder string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("the disk of %s is full, or has no more files to give: %w", folder, err)
		return &driver.Failure{Err: err, Next: "free space there, or name another folder with target.dir; a record takes " +
			"4 KiB and a file"}
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		err = fmt.Errorf("the folder %s cannot be written to: %w", folder, err)
		return &driver.Failure{Err: err, Next: "name a folder of yours with target.dir"}
	}
	return err
}
