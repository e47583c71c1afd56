package record

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"slices"
	"time"

	"tare/internal/load"
)

// A calls file is a row of chunks; the first is a callsMeta in JSON, the others hold calls. A chunk is
//
//	"TRC"  version u8  type u8  0 0 0  count u32  length u32  crc u32  payload
//
// in little-endian, where crc is CRC-32C over the preceding 16 bytes and the payload. A chunk that was cut short or
// does not match its sum ends the file. A call is varints (zigzag where signed), in nanoseconds, about 22 bytes:
//
//	flags u8  operation u8  conn  intended − previous intended  [ready − intended]  [sent − ready]  [first − sent]
//	[done − first]  [status + cause·2¹⁶]  [errno]
//
// Each instant is relative to the latest earlier one that happened. Flags: outcome in bits 0–2, then which of ready,
// sent, first byte and done happened, then whether status and errno follow. Version 1 had no causes, and is otherwise
// the same.
const (
	callsMagic   = "TRC"
	callsVersion = 2
	chunkHeader  = 20
	chunkCalls   = 8192
	// maxChunk bounds what a reader allocates for a chunk, since the file may be damaged: more than the longest possible
	// chunk of chunkCalls calls.
	maxChunk = chunkCalls * 80
	// leastCall is the least length of a call in bytes: flags, operation, connection, instant.
	leastCall = 4

	chunkMeta = 'M'
	chunkCall = 'C'
)

const (
	hasReady = 1 << (3 + iota)
	hasSent
	hasFirst
	hasDone
	hasStatus
	outcomeMask = 7
)

const causeShift = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// callsMeta describes a calls file, so that it can be read without the journal.
type callsMeta struct {
	Schema     string   `json:"schema"`
	Treatment  string   `json:"treatment"`
	Block      int      `json:"block"`
	Operations []string `json:"operations"`
}

// writeChunk appends one chunk in a single write.
func writeChunk(w io.Writer, kind byte, count int, payload []byte) error {
	b := make([]byte, chunkHeader, chunkHeader+len(payload))
	copy(b, callsMagic)
	b[3], b[4] = callsVersion, kind
	binary.LittleEndian.PutUint32(b[8:], uint32(count))
	binary.LittleEndian.PutUint32(b[12:], uint32(len(payload)))
	sum := crc32.Update(crc32.Checksum(b[:16], castagnoli), castagnoli, payload)
	binary.LittleEndian.PutUint32(b[16:], sum)
	_, err := w.Write(append(b, payload...))
	return err
}

// appendCall encodes c after a call whose intended instant was prev.
func appendCall(b []byte, c *load.Call, prev time.Duration) []byte {
	at := len(b)
	b = append(b, byte(c.Outcome)&outcomeMask, c.Operation)
	b = binary.AppendUvarint(b, uint64(c.Conn))
	b = binary.AppendVarint(b, int64(c.Intended-prev))
	last := c.Intended
	for i, t := range [...]time.Duration{c.Ready, c.Sent, c.FirstByte, c.Done} {
		if t != 0 {
			b[at] |= hasReady << i
			b = binary.AppendVarint(b, int64(t-last))
			last = t
		}
	}
	if c.Status != 0 || c.Errno != 0 || c.Cause != 0 {
		// Only one flag is left for three fields: they are written together, an errno of 0 in one byte, a cause of 0 in none.
		b[at] |= hasStatus & 0xff
		b = binary.AppendUvarint(b, uint64(c.Status)|uint64(c.Cause)<<causeShift)
		b = binary.AppendUvarint(b, uint64(c.Errno))
	}
	return b
}

var errTorn = errors.New("cut short or damaged")

// decoder reads varints from a chunk's payload. After the first failure its results mean nothing.
type decoder struct {
	b   []byte
	at  int
	bad bool
}

func (d *decoder) byte() byte {
	if d.at >= len(d.b) {
		d.bad = true
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

// uvarint reads eight bytes at once if it can, and packs their groups of seven bits: a loop over fields of varying
// length would cost a branch misprediction for each.
func (d *decoder) uvarint() uint64 {
	if d.at+8 <= len(d.b) {
		u := binary.LittleEndian.Uint64(d.b[d.at:])
		if ends := ^u & 0x8080808080808080; ends != 0 {
			u &= ends ^ (ends - 1) // up to the first byte without the bit that says that more follow
			d.at += bits.TrailingZeros64(ends)/8 + 1
			u = u&0x007f007f007f007f | u&0x7f007f007f007f00>>1
			u = u&0x00003fff00003fff | u&0x3fff00003fff0000>>2
			return u&0x0fffffff | u&0x0fffffff00000000>>4
		}
	}
	v, n := binary.Uvarint(d.b[d.at:])
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.at += n
	return v
}

// upTo reads a uvarint that is at most limit.
func (d *decoder) upTo(limit uint64) uint64 {
	v := d.uvarint()
	d.bad = d.bad || v > limit
	return v
}

func (d *decoder) varint() time.Duration {
	u := d.uvarint()
	return time.Duration(u>>1) ^ -time.Duration(u&1)
}

// call decodes a call into c after one whose intended instant was prev.
func (d *decoder) call(c *load.Call, prev time.Duration) {
	flags := d.byte()
	*c = load.Call{
		Operation: d.byte(), Outcome: load.Outcome(flags & outcomeMask),
		Conn: uint32(d.upTo(math.MaxUint32)),
	}
	c.Intended = prev + d.varint()
	last := c.Intended
	if flags&hasReady != 0 {
		last += d.varint()
		c.Ready = last
	}
	if flags&hasSent != 0 {
		last += d.varint()
		c.Sent = last
	}
	if flags&hasFirst != 0 {
		last += d.varint()
		c.FirstByte = last
	}
	if flags&hasDone != 0 {
		last += d.varint()
		c.Done = last
	}
	if flags&hasStatus != 0 {
		what := d.upTo(math.MaxUint8<<causeShift | math.MaxUint16)
		c.Status, c.Cause, c.Errno = uint16(what), load.Cause(what>>causeShift), uint16(d.upTo(math.MaxUint16))
	}
	d.bad = d.bad || int(c.Outcome) >= load.Outcomes
}

// callsReader reads a calls file chunk by chunk.
type callsReader struct {
	r       *bufio.Reader
	file    string
	meta    callsMeta
	payload []byte // of the chunk that was read last
	at      int64  // where the next chunk begins
}

func newCallsReader(r io.Reader, file string) (*callsReader, error) {
	c := &callsReader{r: bufio.NewReaderSize(r, 1<<16), file: file}
	kind, _, payload, err := c.chunk()
	if errors.Is(err, io.EOF) {
		err = errTorn
	}
	if err != nil {
		return nil, err
	}
	if kind != chunkMeta {
		return nil, fmt.Errorf("begins with a chunk of type %q: %w", kind, errTorn)
	}
	if err := json.Unmarshal(payload, &c.meta); err != nil {
		return nil, fmt.Errorf("read its description: %w", err)
	}
	return c, nil
}

// chunk returns the next chunk, io.EOF at the end, or errTorn where the rest cannot be read.
func (c *callsReader) chunk() (kind byte, count int, payload []byte, err error) {
	var h [chunkHeader]byte
	if _, err := io.ReadFull(c.r, h[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, 0, nil, io.EOF
		}
		return 0, 0, nil, tornOr(err)
	}
	if string(h[:3]) != callsMagic {
		return 0, 0, nil, errTorn
	}
	if h[3] > callsVersion {
		return 0, 0, nil, &NewerError{File: c.file, Schema: fmt.Sprintf("%s calls version %d", schemaName, h[3])}
	}
	n := binary.LittleEndian.Uint32(h[12:])
	calls := binary.LittleEndian.Uint32(h[8:])
	if n > maxChunk || calls > n/leastCall {
		return 0, 0, nil, errTorn
	}
	c.payload = slices.Grow(c.payload[:0], int(n))
	payload = c.payload[:n]
	if _, err := io.ReadFull(c.r, payload); err != nil {
		return 0, 0, nil, tornOr(err)
	}
	sum := crc32.Update(crc32.Checksum(h[:16], castagnoli), castagnoli, payload)
	if sum != binary.LittleEndian.Uint32(h[16:]) {
		return 0, 0, nil, errTorn
	}
	c.at += chunkHeader + int64(n)
	return h[4], int(calls), payload, nil
}

// tornOr returns errTorn for an early end of the file, and other errors unchanged.
func tornOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}

// next appends the calls of the next chunk to dst. Chunks of unknown types are skipped.
func (c *callsReader) next(dst []load.Call) ([]load.Call, error) {
	for {
		kind, count, payload, err := c.chunk()
		if err != nil {
			return dst, err
		}
		if kind != chunkCall {
			continue
		}
		return decodeCalls(dst, payload, count)
	}
}

func decodeCalls(dst []load.Call, payload []byte, count int) ([]load.Call, error) {
	d := decoder{b: payload}
	var prev time.Duration
	start := len(dst)
	dst = slices.Grow(dst, count)[:start+count]
	for i := range dst[start:] {
		c := &dst[start+i]
		if d.call(c, prev); d.bad {
			return dst[:start], errTorn
		}
		prev = c.Intended
	}
	if d.at < len(payload) {
		return dst[:start], errTorn
	}
	return dst, nil
}
