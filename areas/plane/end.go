package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/files"
	"tare/internal/proc"
)

// holderWithin is how long a holder may take to close its plane: each component has its own grace.
const holderWithin = 60 * time.Second

// End ends a kept plane and returns when nothing of it is left. It asks the holder first, which closes the plane in
// order, and then kills and removes what remains. When ctx ends, the holder is killed.
func (k Kept) End(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, holderWithin)
	defer cancel()
	err := proc.Terminate(ctx, k.Holder)
	_, killed := proc.KillStale(k.Holder) // if it still runs
	return errors.Join(err, killed, k.Clear())
}

// Clear kills the components that still run and removes the folders. It is for planes whose holder has ended, and may
// be called twice.
func (k Kept) Clear() error {
	var errs []error
	for _, p := range k.Processes {
		if _, err := proc.KillStale(p.ID); err != nil {
			errs = append(errs, fmt.Errorf("end %s: %w", p.Name, err))
		}
	}
	for _, dir := range k.Folders {
		if err := RemoveFolder(dir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// RemoveFolder removes a folder that a plane made and reported to Config.Folder. It succeeds if the folder does not
// exist, and refuses others.
func RemoveFolder(dir string) error {
	if !isPlaneFolder(dir) {
		return fmt.Errorf("remove folder: %q is not a folder of a plane", dir)
	}
	return files.RemoveFolder(dir)
}
