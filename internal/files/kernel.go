package files

import (
	"errors"
	"os"
)

// SetKernel writes a value to a file that the kernel shows in one of its file systems. It makes no file.
func SetKernel(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
