// Package door has a server on 127.0.0.1 answer the user who runs it and nobody else. It is compiled into programs of
// others, so it imports nothing but the standard library.
package door

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// Shut has a server close the connections of other users before it reads from them. It returns the server.
func Shut(s *http.Server) *http.Server {
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateNew && check(c) != nil {
			_ = c.Close()
		}
	}
	return s
}

// ShutTLS has handshakes of other users' connections fail. A session that is resumed has a handshake, too.
func ShutTLS(c *tls.Config) {
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return nil, check(hello.Conn) }
}

var errStranger = errors.New("the connection is not one of this user's")

// check returns an error unless the other end of a connection is a socket that this user made. The kernel names that
// user as long as the connection is established. Afterwards it names root.
func check(c net.Conn) error {
	local, remote := inTable(c.LocalAddr()), inTable(c.RemoteAddr())
	if local == "" || remote == "" {
		return errStranger
	}
	text, err := fs.ReadFile(os.DirFS("/proc/self/net"), "tcp")
	if err != nil {
		return fmt.Errorf("ask whose connection it is: %w", err)
	}
	// proc_net_tcp: sl local_address rem_address st tx:rx tr:tm retrnsmt uid
	const established, from, to, state, uid = "01", 1, 2, 3, 7
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > uid && f[from] == remote && f[to] == local && f[state] == established {
			if f[uid] == strconv.Itoa(os.Geteuid()) {
				return nil
			}
			return errStranger
		}
	}
	return errStranger
}

// inTable returns an address as the kernel's table has it, or "" for one that is not of IPv4: a word in the byte order
// of this machine, and the port.
func inTable(a net.Addr) string {
	at, ok := a.(*net.TCPAddr)
	if !ok || at.IP.To4() == nil {
		return ""
	}
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(at.IP.To4()), at.Port)
}
