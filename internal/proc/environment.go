package proc

import (
	"os"
	"slices"
)

// plainNames are the variables that a child gets by default: what programs need to run, and nothing that holds a
// secret.
var plainNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH",
	"SSL_CERT_FILE", "SSL_CERT_DIR",
	"JAVA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "GODEBUG", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// Environment returns the variables of this process that a child gets: plainNames and those that more names. A child
// may pass its environment on: OPA returns it from opa.runtime().
func Environment(more ...string) []string {
	env := []string{} // not nil: that would be the whole environment
	for _, name := range slices.Concat(plainNames, more) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return slices.Clip(env)
}
