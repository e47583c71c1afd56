//go:build !linux

package load

import "net"

// checkHost checks no limits here: a connection that cannot be established ends as ConnFailed with its errno.
func checkHost(conns, sources int) error { return Limits{}.Check(conns, sources) }

// ProcessCPU returns 0 here: the CPU time of this process cannot be read.
func ProcessCPU() float64 { return 0 }

// unacknowledgedOn returns 0: the number is unknown here.
func unacknowledgedOn(net.Conn) int { return 0 }

// unreadOn returns 0: the number is unknown here.
func unreadOn(net.Conn) int { return 0 }

// abortedOn returns false: a reset cannot be detected here.
func abortedOn(net.Conn) bool { return false }
