package load

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// A forger is a TLS 1.3 server that writes any record at any time, which crypto/tls does not: tickets between answers,
// key updates, alerts, and records in pieces. It reads through crypto/tls.
type forger struct {
	raw    net.Conn
	secret []byte // of the records that it writes
	aead   cipher.AEAD
	iv     []byte
	next   uint64 // sequence number
}

// forgedClientTLS is what a client of a forger needs.
func forgedClientTLS() *tls.Config {
	return &tls.Config{RootCAs: testTLS().pool, ClientSessionCache: tls.NewLRUClientSessionCache(0)}
}

// forgingTarget calls answer for every request, until it says stop.
func forgingTarget(t *testing.T, answer func(f *forger) bool) *target {
	t.Helper()
	return rawTarget(t, func(raw net.Conn) {
		var keys bytes.Buffer
		conf := testTLS().server.Clone()
		conf.MinVersion, conf.SessionTicketsDisabled, conf.KeyLogWriter = tls.VersionTLS13, true, &keys
		s := tls.Server(raw, conf)
		if s.Handshake() != nil {
			return
		}
		if s.ConnectionState().CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
			t.Errorf("cipher suite %s, the forger knows AES-128-GCM only",
				tls.CipherSuiteName(s.ConnectionState().CipherSuite))
			return
		}
		f := &forger{raw: raw}
		for line := range bytes.Lines(keys.Bytes()) {
			var random, secret string
			if n, _ := fmt.Sscanf(string(line), "SERVER_TRAFFIC_SECRET_0 %s %s", &random, &secret); n == 2 {
				f.secret, _ = hex.DecodeString(secret)
			}
		}
		if err := f.useSecret(); err != nil {
			t.Error(err)
			return
		}
		requests(func(net.Conn, *http.Request) bool { return answer(f) })(s)
	})
}

// useSecret derives the key and the nonces from the secret (RFC 8446, section 7.3).
func (f *forger) useSecret() error {
	key, err := expand(f.secret, "key", 16)
	if err != nil {
		return err
	}
	if f.iv, err = expand(f.secret, "iv", 12); err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	f.next = 0
	f.aead, err = cipher.NewGCM(block)
	return err
}

func expand(secret []byte, label string, n int) ([]byte, error) {
	label = "tls13 " + label
	info := append([]byte{0, byte(n), byte(len(label))}, label...)
	return hkdf.Expand(sha256.New, secret, string(append(info, 0)), n)
}

// record returns an encrypted record.
func (f *forger) record(kind byte, content []byte) []byte {
	n := len(content) + 1 + f.aead.Overhead()
	header := []byte{23, 3, 3, byte(n >> 8), byte(n)}
	nonce := bytes.Clone(f.iv)
	last := nonce[len(nonce)-8:]
	binary.BigEndian.PutUint64(last, binary.BigEndian.Uint64(last)^f.next)
	f.next++
	return f.aead.Seal(header, nonce, append(bytes.Clone(content), kind), header)
}

// data returns a record of application data.
func (f *forger) data(text string) []byte { return f.record(23, []byte(text)) }

// alert returns a record with an alert; 1, 0 is close_notify.
func (f *forger) alert(level, description byte) []byte {
	return f.record(21, []byte{level, description})
}

// ticket returns a record with a session ticket.
func (f *forger) ticket() []byte {
	body := []byte{0, 0, 14, 16, 1, 2, 3, 4, 1, byte(f.next), 0, 32} // lifetime, age, nonce, length of the ticket
	body = append(append(body, make([]byte, 32)...), 0, 0)           // no extensions
	return f.record(22, append([]byte{4, 0, 0, byte(len(body))}, body...))
}

// keyUpdate returns a record that changes the keys of both sides.
func (f *forger) keyUpdate() []byte {
	b := f.record(22, []byte{24, 0, 0, 1, 1})
	var err error
	if f.secret, err = expand(f.secret, "traffic upd", 32); err == nil {
		err = f.useSecret()
	}
	if err != nil {
		panic(err)
	}
	return b
}

// send sends all in one segment, if they fit.
func (f *forger) send(all ...[]byte) bool {
	_, err := f.raw.Write(bytes.Join(all, nil))
	return err == nil
}

// slowly sends all in pieces of n bytes.
func (f *forger) slowly(n int, all ...[]byte) bool {
	for rest := bytes.Join(all, nil); len(rest) > 0; {
		k := min(n, len(rest))
		if _, err := f.raw.Write(rest[:k]); err != nil {
			return false
		}
		rest = rest[k:]
		time.Sleep(100 * time.Microsecond)
	}
	return true
}
