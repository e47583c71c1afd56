package apparmor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"tare/areas/bundle"
	"tare/internal/files"
)

// hostPolicies is where the parser looks for <…>. What is there is the host's, and trusted.
const hostPolicies = "/etc/apparmor.d"

// The parser opens any file that follows include or abi, as the user who runs tare. tare does not know the grammar in
// which these are words, and strings, or parts of others. So it takes for a directive whatever the lexer could take for
// one (parser_lex.l of AppArmor 3 and 4), and refuses what it does not understand.
var (
	directives = regexp.MustCompile(`^(#?include|abi)`)
	// opens is a directive with the byte after it, or the end of the text.
	opens = regexp.MustCompile(`#include|include[ \t]|abi(?:[\s<"/\\.#]|$)`)
	// opened follows the word: " if exists", and a file.
	opened = regexp.MustCompile(`^(?:([ \t]+if[ \t]+exists)[ \t])?\s*(<[^\\"<>[:cntrl:] ]+>|"[^\\"[:cntrl:]]+")`)
	// comment matches comments, but those that begin like #include. A match may stand in a string, so it is dropped only
	// if it could hold a directive.
	comment = regexp.MustCompile(`(?m)(^|[ \t])#([^i\n]|i[^n\n]|in[^c\n]).*$`)
)

// beforeWord are the bytes after which include and abi are the rest of a longer word, or of a path. Digits are not
// among them: they may be a token of their own.
const beforeWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/.*-"

// included returns a text of profiles with what it includes from a folder, its own. The parser then reads nothing else
// but what is below hostPolicies. grew reports whether anything was.
func included(text, own string) (_ string, grew bool, err error) {
	from, size := bundle.NewReader(), len(text)
	var out strings.Builder
	text = withoutMarks(text)
	for at := 0; ; {
		found := opens.FindStringIndex(text[at:])
		if found == nil {
			out.WriteString(text)
			return out.String(), grew, nil
		}
		start := at + found[0]
		word := directives.FindString(text[start:])
		after := start + len(word)
		if word[0] != '#' && start > 0 && strings.IndexByte(beforeWord, text[start-1]) >= 0 {
			at = after
			continue
		}
		m := opened.FindStringSubmatch(text[after:])
		if m == nil || word == "abi" && m[1] != "" {
			return "", false, fmt.Errorf("%.60q: want <FILE> or \"FILE\" after %s", text[start:], word)
		}
		file, rest := m[2][1:len(m[2])-1], text[after+len(m[0]):]
		if name, isHosts := ofHost(m[2][0], file); isHosts {
			out.WriteString(text[:start] + word + m[1] + " <" + name + ">")
			text, at = rest, 0
			continue
		}
		name, err := filepath.Rel(own, file)
		if m[2][0] == '<' || word == "abi" || err != nil || !filepath.IsLocal(name) {
			return "", false, fmt.Errorf("%s %s: only files below %s are read, and includes of files below %s", word, m[2],
				hostPolicies, own)
		}
		more, err := from.Read(own, name)
		if err != nil && (m[1] == "" || !errors.Is(err, fs.ErrNotExist)) {
			return "", false, fmt.Errorf("%s %s: %w", word, m[2], err)
		}
		if size += len(more); size > mostFile {
			return "", false, fmt.Errorf("%s %s: with what is included the profile is longer than %d bytes", word, m[2],
				mostFile)
		}
		// Its end may make a directive of what stands after it.
		text, at, grew = text[:start]+"\n"+withoutMarks(string(more))+"\n"+rest, start, true
	}
}

// ofHost returns the name below hostPolicies of a file that is in brackets or in quotes.
func ofHost(bracket byte, file string) (name string, isHosts bool) {
	if name = file; bracket == '"' {
		var err error
		if name, err = filepath.Rel(hostPolicies, file); err != nil {
			return "", false
		}
	}
	name = filepath.Clean(name)
	return name, filepath.IsLocal(name) && !strings.ContainsAny(name, " <>")
}

// withoutMarks drops the comments in which a word could be taken for a directive.
func withoutMarks(text string) string {
	return comment.ReplaceAllStringFunc(text, func(c string) string {
		if opens.MatchString(c) {
			return ""
		}
		return c
	})
}

// ownFolder returns the folder of which a file of profiles may include others: its repository, or else the one that it
// is in.
func ownFolder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return files.Top(filepath.Dir(path)), nil
}
