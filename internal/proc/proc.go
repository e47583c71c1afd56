// Package proc starts, watches and ends child processes.
package proc
