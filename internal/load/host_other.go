//go:build !linux

package load

import "net"

// checkHost knows no limits here: a connection that cannot be made ends as ConnFailed with its errno.
func checkHost(conns, sources int) error { return Limits{}.Check(conns, sources) }

// ProcessCPU is the CPU time of this process so far, in seconds. It cannot be read here and is 0.
func ProcessCPU() float64 { return 0 }

// unacknowledgedOn cannot be asked here.
func unacknowledgedOn(net.Conn) int { return 0 }

// unreadOn cannot be asked here.
func unreadOn(net.Conn) int { return 0 }

// abortedOn cannot be asked here.
func abortedOn(net.Conn) bool { return false }
