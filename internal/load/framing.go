package load

import (
	"bytes"
	"math"
)

type bodyMode uint8

const (
	noBody bodyMode = iota
	sized
	chunked
	untilClose
)

// framing is how a header block frames the message that follows (RFC 9112, section 6).
type framing struct {
	status int
	length int64
	mode   bodyMode
	close  bool // the connection cannot be used again
	old    bool // HTTP/1.0
}

// parseHeader reads a header block that ends with its empty line.
func parseHeader(b []byte, head bool) (framing, error) {
	nl := bytes.IndexByte(b, '\n')
	f, err := statusLine(bytes.TrimSuffix(b[:nl], []byte("\r")))
	if err != nil {
		return f, err
	}
	f.length = -1
	coded := false
	for b = b[nl+1:]; ; b = b[nl+1:] {
		nl = bytes.IndexByte(b, '\n')
		line := bytes.TrimSuffix(b[:nl], []byte("\r"))
		if len(line) == 0 {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			continue // the rest of a folded line
		}
		k := bytes.IndexByte(line, ':')
		if k <= 0 {
			return f, errHeader
		}
		if err := f.field(line[:k], bytes.Trim(line[k+1:], " \t"), &coded); err != nil {
			return f, err
		}
	}
	return f, f.setBodyEnd(head, coded)
}

func statusLine(b []byte) (f framing, err error) {
	if len(b) < 12 || (len(b) > 12 && b[12] != ' ') || b[8] != ' ' || (b[7] != '0' && b[7] != '1') {
		return f, errNotHTTP
	}
	for _, c := range b[9:12] {
		if c < '0' || c > '9' {
			return f, errNotHTTP
		}
		f.status = f.status*10 + int(c-'0')
	}
	if f.status < 100 {
		return f, errNotHTTP
	}
	f.old = b[7] == '0'
	f.close = f.old
	return f, nil
}

// field records the three fields that frame a message. It compares the length of names first: most fields are others.
func (f *framing) field(name, value []byte, coded *bool) error {
	switch len(name) {
	case len("content-length"):
		if bytes.EqualFold(name, []byte("content-length")) {
			n, ok := decimal(value)
			if !ok || (f.length >= 0 && f.length != n) {
				return errLength
			}
			f.length = n
		}
	case len("transfer-encoding"):
		if bytes.EqualFold(name, []byte("transfer-encoding")) {
			if *coded || !bytes.EqualFold(value, []byte("chunked")) {
				return errCoding
			}
			*coded = true
		}
	case len("connection"):
		if bytes.EqualFold(name, []byte("connection")) {
			f.connection(value)
		}
	}
	return nil
}

func (f *framing) connection(value []byte) {
	for len(value) > 0 {
		var word []byte
		word, value, _ = bytes.Cut(value, []byte(","))
		switch word = bytes.TrimSpace(word); {
		case bytes.EqualFold(word, []byte("close")):
			f.close = true
			return
		case bytes.EqualFold(word, []byte("keep-alive")):
			f.close = false
		}
	}
}

func decimal(b []byte) (n int64, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' || n > math.MaxInt64/100 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(b) > 0
}

// setBodyEnd determines how the body ends (RFC 9112, section 6.3).
func (f *framing) setBodyEnd(head, coded bool) error {
	switch {
	case f.status == 101:
		return errSwitching
	case head || f.status < 200 || f.status == 204 || f.status == 304:
		f.mode, f.length = noBody, 0
	case coded && f.old:
		return errCoding // RFC 9112, section 6.1: the framing is faulty
	case coded:
		f.mode, f.close = chunked, f.close || f.length >= 0
	case f.length > 0:
		f.mode = sized
	case f.length == 0:
		f.mode = noBody
	default:
		f.mode, f.close = untilClose, true
	}
	return nil
}
