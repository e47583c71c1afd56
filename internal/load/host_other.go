//go:build !linux

package load

import "net"

// checkHost knows no limits here: a connection that cannot be made ends as ConnFailed with its errno.
func checkHost(conns, sources int) error { return Limits{}.Check(conns, sources) }

// processCPU cannot be read here.
func processCPU() float64 { return 0 }

// unacknowledgedOn cannot be asked here.
func unacknowledgedOn(net.Conn) int { return 0 }

// unreadOn cannot be asked here.
func unreadOn(net.Conn) int { return 0 }
