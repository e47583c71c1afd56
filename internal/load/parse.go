package load

import (
	"bytes"
	"errors"
)

const (
	maxHeader = 64 << 10 // bytes of one header block, of all trailers, or of all interim responses
	maxLine   = 4 << 10  // bytes of one chunk-size line
	maxBody   = 1 << 20  // bytes of a body that Check sees; the rest is read and discarded
	keepBody  = 64 << 10 // a connection releases larger buffers
	// maxAnswer bounds the bytes of an answer, including all that surrounds its body: an endless answer costs no more, on
	// any link.
	maxAnswer = 16 << 20
)

// Why bytes are not a valid response. The texts never contain the bytes: these may be credentials.
var (
	errNotHTTP   = errors.New("not an HTTP/1 response")
	errHeader    = errors.New("malformed header")
	errTooLong   = errors.New("header too long")
	errLength    = errors.New("malformed Content-Length")
	errCoding    = errors.New("unknown Transfer-Encoding")
	errChunk     = errors.New("malformed chunk")
	errSwitching = errors.New("protocol switched without being asked")
	errTrailer   = errors.New("trailer too long")
	errAnswer    = errors.New("answer too long")
	errTLS       = errors.New("a TLS record")
)

// parseCause returns the cause for an error of the parser.
func parseCause(err error) Cause {
	switch {
	case errors.Is(err, errTooLong):
		return CauseHeaderTooLong
	case errors.Is(err, errLength):
		return CauseBadLength
	case errors.Is(err, errCoding):
		return CauseCoding
	case errors.Is(err, errChunk):
		return CauseBadChunks
	case errors.Is(err, errSwitching):
		return CauseSwitching
	case errors.Is(err, errTrailer):
		return CauseTrailerTooLong
	case errors.Is(err, errAnswer):
		return CauseTooLong
	case errors.Is(err, errTLS):
		return CauseSpeaksTLS
	}
	return CauseMalformed
}

// template remembers the last header block: servers repeat themselves, and comparing is faster than parsing.
type template struct {
	header []byte
	framing
}

type parseState uint8

const (
	inHeader parseState = iota
	inBody
	inSize    // a chunk-size line
	inChunk   // chunk data
	inChunkNL // the line end after it
	inTrailer
)

// parser parses one HTTP/1.1 response after another from pieces of any size. The zero value is ready.
type parser struct {
	framing
	state   parseState
	head    bool // the request was HEAD: no body follows
	left    int64
	fed     int    // bytes of this answer so far
	interim int    // of these, how many are of interim responses
	seen    int    // bytes of buf that hold no header end; bytes of trailers
	buf     []byte // an incomplete header block or line
	body    []byte // as much as arrived in pieces, up to maxBody
	whole   []byte // the complete body, when feed returns done; valid until the next call
}

// begin prepares the parser for the answer to the next request.
func (p *parser) begin(head bool) {
	p.state, p.head, p.seen, p.fed, p.interim = inHeader, head, 0, 0, 0
	p.buf, p.body = reset(p.buf), reset(p.body)
	p.whole = nil
}

// reset empties b for reuse, or drops it if one answer made it large.
func reset(b []byte) []byte {
	if cap(b) > keepBody {
		return nil
	}
	return b[:0]
}

// feed parses the next bytes of the connection. When done, the response is complete and rest follows it.
func (p *parser) feed(b []byte, t *template) (done bool, rest []byte, err error) {
	if p.fed += len(b); p.fed > maxAnswer {
		return false, nil, errAnswer
	}
	for p.state == inHeader {
		var ok bool
		if b, ok, err = p.header(b, t); !ok || err != nil {
			return false, nil, err
		}
		if p.status >= 200 {
			break
		}
		p.state = inHeader // an interim response; the final one follows
		if p.interim > maxHeader {
			return false, nil, errTooLong
		}
	}
	switch p.mode {
	case noBody:
		return true, b, nil
	case sized:
		return p.sized(b)
	case untilClose:
		p.keep(b)
		return false, nil, nil
	case chunked:
	}
	return p.chunks(b)
}

// eof reports whether the peer's close completes the response: only if its body ends with the connection.
func (p *parser) eof() bool {
	if p.state != inBody || p.mode != untilClose {
		return false
	}
	p.whole = p.body
	return true
}

func (p *parser) header(b []byte, t *template) (rest []byte, ok bool, err error) {
	if len(p.buf) == 0 && len(t.header) > 0 && !p.head && bytes.HasPrefix(b, t.header) {
		p.framing = t.framing
		p.startBody()
		return b[len(t.header):], true, nil
	}
	block, carried := b, len(p.buf)
	if carried > 0 {
		p.buf = append(p.buf, b[:min(len(b), maxHeader+1)]...)
		block = p.buf
	}
	if !bytes.HasPrefix(block, []byte("HTTP/1."[:min(7, len(block))])) {
		return nil, false, notHTTP(block)
	}
	end := headerEnd(block, p.seen)
	if end < 0 {
		if len(block) > maxHeader {
			return nil, false, errTooLong
		}
		if carried == 0 {
			p.buf = append(p.buf, b...)
		}
		p.seen = max(0, len(p.buf)-2)
		return nil, false, nil
	}
	if end > maxHeader {
		return nil, false, errTooLong
	}
	if p.framing, err = parseHeader(block[:end], p.head); err != nil {
		return nil, false, err
	}
	if p.length > maxAnswer {
		return nil, false, errAnswer
	}
	if !p.head && p.status >= 200 {
		t.header, t.framing = append(t.header[:0], block[:end]...), p.framing
	}
	if p.status < 200 {
		p.interim += end
	}
	p.startBody()
	p.buf, p.seen = p.buf[:0], 0
	return b[end-carried:], true, nil
}

// notHTTP distinguishes a TLS record, an alert or a handshake (RFC 8446, section 5.1), from anything else.
func notHTTP(b []byte) error {
	if b[0] == 0x15 || b[0] == 0x16 {
		return errTLS
	}
	return errNotHTTP
}

func (p *parser) startBody() {
	p.state, p.left = inBody, p.length
	if p.mode == chunked {
		p.state = inSize
	}
}

// headerEnd returns the index after the empty line that ends a header block, or −1. The first from bytes contain none.
func headerEnd(b []byte, from int) int {
	for i := from; ; {
		j := bytes.IndexByte(b[i:], '\n')
		if j < 0 {
			return -1
		}
		i += j + 1
		switch {
		case i < len(b) && b[i] == '\n':
			return i + 1
		case i+1 < len(b) && b[i] == '\r' && b[i+1] == '\n':
			return i + 2
		}
	}
}

func (p *parser) sized(b []byte) (bool, []byte, error) {
	n := min(p.left, int64(len(b)))
	p.left -= n
	if p.left > 0 {
		p.keep(b[:n])
		return false, nil, nil
	}
	if len(p.body) == 0 && n <= maxBody {
		p.whole = b[:n]
	} else {
		p.keep(b[:n])
		p.whole = p.body
	}
	return true, b[n:], nil
}

func (p *parser) keep(b []byte) {
	p.body = append(p.body, b[:min(len(b), maxBody-len(p.body))]...)
}

func (p *parser) chunks(b []byte) (bool, []byte, error) {
	for {
		if p.state == inChunk {
			n := min(p.left, int64(len(b)))
			p.keep(b[:n])
			p.left -= n
			b = b[n:]
			if p.left > 0 {
				return false, nil, nil
			}
			p.state = inChunkNL
		}
		line, rest, ok, err := p.line(b)
		if !ok || err != nil {
			return false, nil, err
		}
		b = rest
		done, err := p.chunkLine(line)
		p.buf = p.buf[:0]
		if done || err != nil {
			return done, b, err
		}
	}
}

// chunkLine handles one line of the chunked coding (RFC 9112, section 7.1).
func (p *parser) chunkLine(line []byte) (done bool, err error) {
	if p.state == inChunkNL {
		if len(line) > 0 {
			return false, errChunk
		}
		p.state = inSize
		return false, nil
	}
	if p.state == inSize {
		p.left, err = chunkSize(line)
		if p.state, p.seen = inChunk, 0; p.left == 0 {
			p.state = inTrailer
		}
		return false, err
	}
	if len(line) == 0 {
		p.whole = p.body
		return true, nil
	}
	if p.seen += len(line); p.seen > maxHeader {
		return false, errTrailer
	}
	return false, nil
}

// line cuts the next line from b, without its end; ok is false if it is not complete yet.
func (p *parser) line(b []byte) (line, rest []byte, ok bool, err error) {
	j := bytes.IndexByte(b, '\n')
	limit, long := maxLine, errChunk
	if p.state == inTrailer {
		limit, long = maxHeader, errTrailer
	}
	if len(p.buf)+max(j, 0) > limit || (j < 0 && len(p.buf)+len(b) > limit) {
		return nil, nil, false, long
	}
	if j < 0 {
		p.buf = append(p.buf, b...)
		return nil, nil, false, nil
	}
	line, rest = b[:j], b[j+1:]
	if len(p.buf) > 0 {
		p.buf = append(p.buf, line...)
		line = p.buf
	}
	return bytes.TrimSuffix(line, []byte("\r")), rest, true, nil
}

func chunkSize(line []byte) (int64, error) {
	if k := bytes.IndexByte(line, ';'); k >= 0 {
		line = line[:k]
	}
	line = bytes.TrimRight(line, " \t")
	var n int64
	if len(line) == 0 || len(line) > 15 {
		return 0, errChunk
	}
	for _, c := range line {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, errChunk
		}
		n = n<<4 | int64(c)
	}
	return n, nil
}
