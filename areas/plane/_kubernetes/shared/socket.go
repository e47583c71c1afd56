package main

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
)

// socketName matches the name of a file in the working folder that is not hidden.
var socketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// socket parses the address of a Unix socket in dir, "unix://etcd.sock". It fails if others may enter dir, because etcd
// asks the users of the socket for no credentials. The address is relative, since the path of a socket has at most 107
// bytes.
func socket(raw, dir string) (url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return url.URL{}, err
	}
	if u.Scheme != "unix" || u.String() != "unix://"+u.Host || !socketName.MatchString(u.Host) {
		return url.URL{}, fmt.Errorf("address %q: want unix://NAME, a file in the working folder", raw)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return url.URL{}, fmt.Errorf("address %q: %w", raw, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return url.URL{}, fmt.Errorf("address %q: others may enter the working folder (mode %v); start it in one of mode "+
			"0700", raw, info.Mode().Perm())
	}
	return *u, nil
}
