package hostile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// conn is a connection as a talker sees it.
type conn struct {
	net.Conn
	of     *Running
	unread []byte
}

// ask reads one request, which has no body, and returns its path without the first slash.
func (c *conn) ask() (path string, ok bool) {
	b := make([]byte, 4<<10)
	for {
		if end := bytes.Index(c.unread, []byte("\r\n\r\n")); end >= 0 {
			line, _, _ := bytes.Cut(c.unread[:end], []byte("\r\n"))
			c.unread = c.unread[end+4:]
			words := bytes.Fields(line)
			if len(words) != 3 || len(words[1]) == 0 {
				return "", false
			}
			c.of.mu.Lock()
			c.of.requests++
			c.of.mu.Unlock()
			return string(words[1][1:]), true
		}
		n, err := c.Read(b)
		if c.unread = append(c.unread, b[:n]...); err != nil {
			return "", false
		}
	}
}

// say writes text.
func (c *conn) say(text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

// hang does nothing more until the client closes, or the server stops. What comes is read.
func (c *conn) hang(ctx context.Context) {
	_, _ = io.Copy(io.Discard, c)
	_ = pause(ctx, 0)
}

// deaf does nothing at all until the server stops or is mended: what comes stays in the kernel.
func (c *conn) deaf(ctx context.Context) {
	for pause(ctx, 5*time.Millisecond) {
		c.of.mu.Lock()
		mended := c.of.mended
		c.of.mu.Unlock()
		if mended {
			return
		}
	}
}

// reset has the connection end with a reset.
func (c *conn) reset() {
	under := c.Conn
	if t, ok := under.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
}

// drip writes text one byte at a time.
func (c *conn) drip(ctx context.Context, text string) bool {
	for i := range text {
		if !c.say(text[i:i+1]) || !pause(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

// repeat writes block n times, for ever when n is 0.
func (c *conn) repeat(block []byte, n int) bool {
	for i := 0; n == 0 || i < n; i++ {
		if _, err := c.Write(block); err != nil {
			return false
		}
	}
	return true
}

// pause waits for d; false: ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// answer is the right answer to a request for path: its own path, so that no answer can be taken for another's.
func answer(path string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(path), path)
}

// good answers every request rightly.
func good(_ context.Context, c *conn) {
	for {
		path, ok := c.ask()
		if !ok || !c.say(answer(path)) {
			return
		}
	}
}

// each answers every request with what reply makes of it.
func each(reply func(path string) string) talker {
	return func(_ context.Context, c *conn) {
		for {
			path, ok := c.ask()
			if !ok || !c.say(reply(path)) {
				return
			}
		}
	}
}

// says answers every request with the same text.
func says(text string) talker { return each(func(string) string { return text }) }

// then answers the first request with text and goes on with next.
func then(text string, next talker) talker {
	return func(ctx context.Context, c *conn) {
		if _, ok := c.ask(); ok && c.say(text) {
			next(ctx, c)
		}
	}
}

// The ways to go on.

func hangs(ctx context.Context, c *conn) { c.hang(ctx) }

func deaf(ctx context.Context, c *conn) { c.deaf(ctx) }

func closes(context.Context, *conn) {}

func resets(_ context.Context, c *conn) { c.reset() }

func afterRequest(next talker) talker { return then("", next) }

func drips(text string) talker {
	return func(ctx context.Context, c *conn) { c.drip(ctx, text) }
}

// goesOn writes block over and over.
func goesOn(block string) talker {
	b := []byte(block)
	return func(_ context.Context, c *conn) { c.repeat(b, 0) }
}

func halfCloses(ctx context.Context, c *conn) {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
	c.hang(ctx)
}
