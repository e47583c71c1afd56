package protocol

import (
	"net"
	"testing"

	"tare/lab/memtest"
)

func ask(c net.Conn) error {
	_, _, err := newLine(c).exchange([]byte("GET / HTTP/1.1\r\n\r\n"))
	return err
}

// TestEndlessAnswers: whichever part of an answer does not end, tare stops reading, and says so.
func TestEndlessAnswers(t *testing.T) { memtest.EndlessAnswers(t, 4*maxAnswer, ask) }

func FuzzExchange(f *testing.F) { memtest.FuzzAnswers(f, ask) }
