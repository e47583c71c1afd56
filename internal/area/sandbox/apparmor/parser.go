package apparmor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/area"
)

// Limits of a compilation.
const (
	compileWithin = time.Minute
	mostBinary    = 64 << 20 // far more than any profile of ours or of a distribution
	mostMessages  = 64 << 10
)

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
	Complain Mode = "complain" // allow and report what the profile does not allow; "deny" rules still refuse
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

// runParser runs apparmor_parser on a source without touching the kernel or a cache.
func runParser(ctx context.Context, s Source, args ...string) (out []byte, warnings []string, err error) {
	program, err := findParser()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, compileWithin)
	defer cancel()
	args = append([]string{"--skip-kernel-load", "--skip-cache"}, args...)
	if _, err := os.Stat(filepath.Join(kernelDir, "features")); err != nil {
		args = append(args, "--features-file", fallbackABI)
	}
	text, err := memoryFile(s.Text)
	if err != nil {
		return nil, nil, fmt.Errorf("compile %s: %w", s.Name, err)
	}
	defer text.Close()                                                    //nolint:errcheck // it has been written
	cmd := exec.CommandContext(ctx, program, append(args, sourceFile)...) //nolint:gosec // found in PATH
	cmd.ExtraFiles = []*os.File{text}
	cmd.Env = []string{"LC_ALL=C", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.WaitDelay = time.Second
	stdout, stderr := limited{most: mostBinary}, limited{most: mostMessages}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	messages := parserMessages(stderr.String(), s.Name)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, nil, fmt.Errorf("compile %s: apparmor_parser did not end within %s", s.Name, compileWithin)
	case ctx.Err() != nil:
		return nil, nil, fmt.Errorf("compile %s: %w", s.Name, ctx.Err())
	case stdout.over:
		return nil, nil, fmt.Errorf("compile %s: apparmor_parser wrote more than %d bytes", s.Name, mostBinary)
	case err != nil && len(messages) > 0:
		return nil, nil, fmt.Errorf("compile %s: %s", s.Name, strings.Join(messages, "; "))
	case err != nil:
		return nil, nil, fmt.Errorf("compile %s: apparmor_parser: %w", s.Name, err)
	}
	return stdout.Bytes(), messages, nil
}

// findParser returns the path of apparmor_parser, which is not in the PATH of every user.
func findParser() (string, error) {
	for _, path := range []string{"apparmor_parser", "/usr/sbin/apparmor_parser", "/sbin/apparmor_parser"} {
		found, err := exec.LookPath(path)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find apparmor_parser: %w", err)
		}
	}
	return "", area.WithHint(errors.New("apparmor_parser is not installed"),
		"install it, such as by: apt-get install apparmor")
}

// sourceFile is the name by which the parser opens a source. Errors in included files name those files only if the
// source is a file too.
const sourceFile = "/proc/self/fd/3"

// memoryFile returns a file without a name that holds a text.
func memoryFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("profile", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "profile")
	if _, err := f.WriteString(text); err != nil {
		return nil, errors.Join(fmt.Errorf("write a file in memory: %w", err), f.Close())
	}
	return f, nil
}

// errorHead begins the parser's errors, with the file after "in profile", or else after "for".
var errorHead = regexp.MustCompile(`^AppArmor parser error(?: for (\S+))?(?: in profile (.+?))?(?: at line (\d+))?: `)

// parserMessages returns what the parser said but about its cache, which is not used.
func parserMessages(text, name string) (out []string) {
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
			if file != "" && file != sourceFile {
				line = file + ", " + line
			}
		}
		out = append(out, strings.ReplaceAll(line, sourceFile, name))
	}
	return out
}

// limited is a buffer that drops what exceeds a limit.
type limited struct {
	bytes.Buffer

	most int
	over bool
}

// Write implements io.Writer. It never fails, so the program does not block on a full pipe.
func (l *limited) Write(b []byte) (int, error) {
	if keep := l.most - l.Len(); keep < len(b) {
		l.over = true
		_, _ = l.Buffer.Write(b[:max(keep, 0)])
		return len(b), nil
	}
	return l.Buffer.Write(b)
}
