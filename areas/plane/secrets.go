package plane

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/files"
)

// Users that a plane identifies by their tokens.
const (
	AdminUser  = "tare-admin"  // group system:masters, which skips authorization
	CallerUser = "tare-caller" // no rights beyond those of every authenticated user
	NodesUser  = "tare-nodes"  // group system:masters: simulated nodes write what a thousand kubelets would
)

// masters is the group that bypasses RBAC.
const masters = "system:masters"

// folderPrefix marks the folders that tare may remove.
const folderPrefix = "tare-plane-"

// shm is where POSIX shared memory lives: a tmpfs on practically every Linux.
const shm = "/dev/shm"

// secrets are the private files of one plane, in one folder.
type secrets struct {
	dir                                         string
	ca                                          *authority
	admin, caller, nodes, scheduler, controller string // tokens
}

// secretFolder returns a path that does not exist yet: on tmpfs if there is one, so that no key reaches a disk.
func secretFolder() string {
	name := folderPrefix + rand.Text()[:12]
	if kind, _, err := fileSystem(shm); err == nil && kind == unix.TMPFS_MAGIC &&
		unix.Access(shm, unix.W_OK|unix.X_OK) == nil {
		return filepath.Join(shm, name)
	}
	return filepath.Join(os.TempDir(), name)
}

// fileSystem returns the type of the file system at path and its free bytes.
func fileSystem(path string) (kind int64, free uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, fmt.Errorf("file system of %s: %w", path, err)
	}
	return int64(s.Type), s.Bavail * uint64(s.Bsize), nil //nolint:unconvert // the types differ between architectures
}

// write makes the folder, which must not exist, and all files in it that do not depend on ports.
func (s *secrets) write(now time.Time) error {
	if err := files.MakeNew(s.dir); err != nil {
		return fmt.Errorf("make a folder for secrets: %w", err)
	}
	s.admin, s.caller, s.nodes, s.scheduler, s.controller = rand.Text(), rand.Text(), rand.Text(), rand.Text(), rand.Text()
	var err error
	if s.ca, err = newAuthority(now); err != nil {
		return err
	}
	cert, key, err := s.ca.server(now)
	if err != nil {
		return err
	}
	account, err := newKey()
	if err != nil {
		return err
	}
	accountKey, err1 := encodePrivate(account)
	accountPublic, err2 := encodePublic(account)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		caFile: s.ca.pem, certFile: cert, keyFile: key, accountKeyFile: accountKey, accountPublicFile: accountPublic,
		tokenFile: s.tokens(), egressFile: []byte(egress),
	} {
		if err := os.WriteFile(s.path(name), text, 0o600); err != nil {
			return fmt.Errorf("write secrets: %w", err)
		}
	}
	return nil
}

// Files in the folder.
const (
	caFile            = "ca.crt"
	certFile          = "tls.crt" // with keyFile the names that other servers look for in a folder
	keyFile           = "tls.key"
	accountKeyFile    = "service-account.key"
	accountPublicFile = "service-account.pub"
	tokenFile         = "tokens.csv"
	adminFile         = "kubeconfig"
	schedulerFile     = "kube-scheduler.kubeconfig"
	controllerFile    = "kube-controller-manager.kubeconfig"
	etcdFolder        = "etcd"
	egressFile        = "egress.yaml"
)

// egress has kube-apiserver reach nodes, pods and services by a socket that there is not: no node of a plane serves
// anything, and whoever may create a node, or what a service stands for, could have the server call any host.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
  - name: cluster
    connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: no-nodes-pods-or-services}}}
`

func (s *secrets) path(name string) string { return filepath.Join(s.dir, name) }

// tokens returns kube-apiserver's static token file: token, user, uid, groups.
func (s *secrets) tokens() []byte {
	var b bytes.Buffer
	for i, u := range []struct{ token, user, group string }{
		{s.admin, AdminUser, masters},
		{s.caller, CallerUser, ""},
		{s.nodes, NodesUser, masters},
		{s.scheduler, "system:kube-scheduler", ""},
		{s.controller, "system:kube-controller-manager", ""},
	} {
		b.WriteString(u.token + "," + u.user + "," + strconv.Itoa(i+1))
		if u.group != "" {
			b.WriteString("," + strconv.Quote(u.group))
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// kubeconfigs writes one file for each user, once the server's address is known.
func (s *secrets) kubeconfigs(server string) error {
	for _, k := range []struct{ file, user, token string }{
		{adminFile, AdminUser, s.admin},
		{schedulerFile, "system:kube-scheduler", s.scheduler},
		{controllerFile, "system:kube-controller-manager", s.controller},
	} {
		text, err := kubeconfig(server, s.ca.pem, k.user, k.token)
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.path(k.file), text, 0o600); err != nil {
			return fmt.Errorf("write kubeconfig: %w", err)
		}
	}
	return nil
}
