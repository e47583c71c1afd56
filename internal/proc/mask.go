package proc

import (
	"bytes"

	"tare/internal/files"
)

// shortestSecret is the least length in bytes of a value that is masked.
const shortestSecret = 8

// maskedAtOnce is how much of a log is read at a time, in bytes.
const maskedAtOnce = 1 << 20

// mask hides the secrets in what the child has written to its log.
func (l *childLog) mask() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.maskHeld()
}

// maskHeld is mask while mu is held. A part that cannot be read or written stays as it is: the log is the user's own
// file.
func (l *childLog) maskHeld() {
	if l.path == "" || len(l.secrets) == 0 {
		return
	}
	f, err := files.Edit(l.path)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // see above
	overlap := l.secrets.Longest() - 1
	text := make([]byte, maskedAtOnce+overlap)
	for at := l.start; ; at += maskedAtOnce {
		n, _ := f.ReadAt(text, at)
		if n == 0 {
			return
		}
		was := bytes.Clone(text[:n])
		if l.secrets.Fill(text[:n]); !bytes.Equal(was, text[:n]) {
			if _, err := f.WriteAt(text[:n], at); err != nil {
				return
			}
		}
	}
}
