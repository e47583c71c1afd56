package files

import (
	"os"
	"path/filepath"
)

// Interpreter returns what usually runs a script, by the suffix of its name.
func Interpreter(path string) (program string, ok bool) {
	program, ok = map[string]string{
		".py": "python3", ".sh": "sh", ".js": "node", ".mjs": "node", ".rb": "ruby", ".pl": "perl",
		".jar": "java, -jar", ".php": "php", ".lua": "lua",
	}[filepath.Ext(path)]
	return program, ok
}

// IsCode reports whether a word of a command line is a file that is executable, or a script by its name. Other files
// may be data.
func IsCode(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	_, script := Interpreter(path)
	return script || info.Mode().Perm()&0o111 != 0
}
