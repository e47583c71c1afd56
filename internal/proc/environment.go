package proc

import (
	"os"
	"slices"
)

// plainNames are the variables that a child gets where nobody says which: what programs need to find their way, and what holds no secret.
var plainNames = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"JAVA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "GODEBUG", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR",
}

// Environment is this process's environment without all that a child has no need to know, but with the variables that more names. A child may hand its
// environment on: OPA answers opa.runtime() with it.
func Environment(more ...string) []string {
	env := []string{} // not nil: that would be all of it
	for _, name := range slices.Concat(plainNames, more) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return slices.Clip(env)
}
