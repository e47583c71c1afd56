package apparmor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tare/areas/sandbox/compiler"
)

// parser compiles profiles.
var parser = compiler.Compiler{Program: "apparmor_parser", Package: "apparmor", Messages: parserMessages}

// fallbackABI are the features that profiles are checked against where the kernel offers none.
const fallbackABI = "/etc/apparmor.d/abi/3.0"

// A Source is the text of one or more profiles.
type Source struct {
	Name string // for messages: the file, or the profile
	Text string
}

// Mode is how the kernel is to treat a profile.
type Mode string

// The modes of a profile.
const (
	Enforce  Mode = "enforce"
	Complain Mode = "complain" // allow and report what the profile refuses
)

// Compile translates profiles for this kernel. It returns the warnings too, such as of rules that the kernel cannot
// enforce. It loads nothing.
func Compile(ctx context.Context, s Source, m Mode) (profiles []byte, warnings []string, err error) {
	args := []string{"--stdout"}
	if m == Complain {
		args = append(args, "--Complain")
	}
	profiles, warnings, err = runParser(ctx, s, args...)
	if err == nil && len(profiles) == 0 {
		err = fmt.Errorf("compile %s: it has no profile", s.Name)
	}
	return profiles, warnings, err
}

// profileNames lists the profiles of a source, with "parent//child" for those inside of others.
func profileNames(ctx context.Context, s Source) ([]string, error) {
	out, _, err := runParser(ctx, s, "--names")
	if err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// flatten returns the source with the text of included files.
func flatten(ctx context.Context, s Source) (string, error) {
	out, _, err := runParser(ctx, s, "--preprocess")
	return string(out), err
}

// runParser runs apparmor_parser on a source without touching the kernel or a cache. It compiles in its own process:
// one that it starts would not end with tare.
func runParser(ctx context.Context, s Source, args ...string) (out []byte, warnings []string, err error) {
	args = append([]string{"--skip-kernel-load", "--skip-cache", "--jobs=0"}, args...)
	if _, err := os.Stat(filepath.Join(kernelDir, "features")); err != nil {
		args = append(args, "--features-file", fallbackABI)
	}
	return parser.Run(ctx, s.Name, s.Text, append(args, compiler.SourceFile)...)
}

// errorHead begins the parser's errors, with the file after "in profile", or else after "for".
var errorHead = regexp.MustCompile(`^AppArmor parser error(?: for (\S+))?(?: in profile (.+?))?(?: at line (\d+))?: `)

// parserMessages returns what the parser said but about its cache, which is not used.
func parserMessages(text string) (out []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "Cache ") {
			continue
		}
		if m := errorHead.FindStringSubmatch(line); m != nil {
			file, at := m[1], m[3]
			if m[2] != "" {
				file = m[2]
			}
			line = line[len(m[0]):]
			if at != "" {
				line = "line " + at + ": " + line
			}
			if file != "" && file != compiler.SourceFile {
				line = file + ", " + line
			}
		}
		out = append(out, line)
	}
	return out
}
