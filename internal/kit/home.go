package kit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ExpandHome returns a path of an experiment file with a leading ~ replaced by the user's home folder. ~user is an
// error: tare does not look up other users.
func ExpandHome(path string) (string, error) {
	if !strings.HasPrefix(path, "~") {
		return path, nil
	}
	if path != "~" && !strings.HasPrefix(path, "~/") {
		user, _, _ := strings.Cut(path, "/")
		return "", fmt.Errorf("%s: only ~/ is supported, your own home folder; write the whole path, or ./%[1]s for a file "+
			"of that name", user)
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", errors.New("~ needs the environment variable HOME, which is not set; write the whole path")
	}
	return filepath.Join(home, path[1:]), nil
}
