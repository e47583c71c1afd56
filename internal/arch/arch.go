// Package arch holds the test that keeps imports pointing down.
package arch
