package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"slices"
	"strings"
	"time"

	"tare/internal/load"
)

// All are all servers, a good one among them. Their names are unique.
func All() []Server {
	return slices.Concat(controls(), connections(), framings(), turns(), secure())
}

const ok = "HTTP/1.1 200 OK\r\n"

func one(name string, talk talker, o load.Outcome, status uint16, why ...load.Cause) Server {
	if len(why) == 0 {
		why = []load.Cause{0}
	}
	return Server{
		Name: name, Want: Want{Outcomes: []load.Outcome{o}, Causes: why, Status: status},
		begin: func(ctx context.Context) (*Running, error) { return serve(ctx, talk) },
	}
}

// either is a server with which the kernel's timing decides between a lost connection and a closed one.
func (s Server) either(o load.Outcome) Server {
	s.Want.Outcomes = append(s.Want.Outcomes, o)
	return s
}

// controls behave in ways that every client must take.
func controls() []Server {
	return []Server{
		one("good", good, load.OK, 200),
		one("chunked", each(func(p string) string {
			return ok + "Transfer-Encoding: chunked\r\n\r\n" + chunk(p) +
				"0\r\n\r\n"
		}), load.OK, 200),
		one("early hints", each(func(p string) string {
			return "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
				answer(p)
		}), load.OK, 200),
		one("continue unasked", each(func(p string) string { return "HTTP/1.1 100 Continue\r\n\r\n" + answer(p) }), load.OK,
			200),
		one("HTTP/1.0", func(_ context.Context, c *conn) {
			if p, ok := c.ask(); ok {
				c.say("HTTP/1.0 200 OK\r\n\r\n" + p)
			}
		}, load.OK, 200),
		one("length and chunks", func(_ context.Context, c *conn) {
			if p, asked := c.ask(); asked {
				c.say(ok + "Content-Length: 70000\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(p) + "0\r\n\r\n")
			}
		}, load.OK, 200),
	}
}

func chunk(text string) string {
	const digits = "0123456789abcdef"
	return string(digits[len(text)]) + "\r\n" + text + "\r\n"
}

// connections are refused, lost or never used.
func connections() []Server {
	return []Server{
		{
			Name: "refuses", Want: Want{Outcomes: []load.Outcome{load.ConnFailed}, Causes: []load.Cause{load.CauseConnect}},
			begin: refusing,
		},
		{Name: "never accepts", Want: Want{Outcomes: []load.Outcome{load.Timeout}, Causes: []load.Cause{
			load.CauseDialing,
			load.CauseNoByte,
		}}, begin: crowded},
		one("hangs after accept", deaf, load.Timeout, 0, load.CauseNoByte),
		one("hangs after the request", afterRequest(hangs), load.Timeout, 0, load.CauseNoByte),
		one("hangs in the header", then(ok+"Content-Le", hangs), load.Timeout, 0, load.CauseNoEnd),
		one("hangs in the body", then(ok+"Content-Length: 9\r\n\r\nhalf", hangs), load.Timeout, 0, load.CauseNoEnd),
		one("closes at once", closes, load.Failed, 0, load.CauseClosedEarly, load.CauseConnect).either(load.ConnFailed),
		one("closes after the request", afterRequest(closes), load.Failed, 0, load.CauseClosedEarly),
		one("closes in the header", then(ok+"Content-Le", closes), load.Failed, 0, load.CauseClosedWithin),
		one("closes in the body", then(ok+"Content-Length: 9\r\n\r\nhalf", closes), load.Failed, 200, load.CauseClosedWithin),
		one("closes in a chunk", then(ok+"Transfer-Encoding: chunked\r\n\r\n9\r\nhalf", closes), load.Failed, 200,
			load.CauseClosedWithin),
		one("half-closes instead of an answer", afterRequest(halfCloses), load.Failed, 0, load.CauseClosedEarly),
		one("resets at once", resets, load.ConnFailed, 0, load.CauseClosedEarly, load.CauseConnect),
		one("resets after the request", afterRequest(resets), load.ConnFailed, 0, load.CauseClosedEarly),
		one("resets in the body", then(ok+"Content-Length: 9\r\n\r\nhalf", func(ctx context.Context, c *conn) {
			pause(ctx, 5*time.Millisecond)
			c.reset()
		}), load.ConnFailed, 0, load.CauseClosedWithin),
		one("drips the header", afterRequest(drips(ok+"X: "+strings.Repeat("x", 1000))), load.Timeout, 0, load.CauseNoEnd),
		one("drips the body", then(ok+"Content-Length: 1000\r\n\r\n", drips(strings.Repeat("x", 1000))), load.Timeout, 0,
			load.CauseNoEnd),
		large(one("reads nothing", deaf, load.Timeout, 0, load.CauseNoByte)),
		{
			Name: "window of a byte", Want: Want{Outcomes: []load.Outcome{load.Timeout}, Causes: []load.Cause{load.CauseNoByte}},
			Big: true, begin: narrow,
		},
	}
}

func large(s Server) Server {
	s.Big = true
	return s
}

// long is a line of 4 MiB, and the end of a header.
func long(_ context.Context, c *conn) {
	if c.repeat(bytes.Repeat([]byte("x"), 64<<10), 64) {
		c.say("\r\n\r\n")
	}
}

// framings are wrong, contradictory or without an end.
func framings() []Server {
	chunked := ok + "Transfer-Encoding: chunked\r\n\r\n"
	return []Server{
		one("garbage", says("SSH-2.0-OpenSSH_9.6\r\n\r\n"), load.Failed, 0, load.CauseMalformed),
		one("binary, then an answer", each(func(p string) string { return "\x00\xff\x13\x37\x80\r\n\r\n" + answer(p) }),
			load.Failed, 0, load.CauseMalformed),
		one("HTTP/0.9", then("<html>hello</html>\n", closes), load.Failed, 0, load.CauseMalformed),
		one("HTTP/2", says("\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x80\x00\x04\x00\x01\x00\x00"),
			load.Failed, 0, load.CauseMalformed),
		one("status of letters", says("HTTP/1.1 two OK\r\n\r\n"), load.Failed, 0, load.CauseMalformed),
		one("header without a colon", says(ok+"Content-Length 2\r\n\r\nok"), load.Failed, 0, load.CauseMalformed),
		one("huge header line", then(ok+"X: ", long), load.Failed, 0, load.CauseHeaderTooLong),
		one("endless header", then(ok, goesOn(strings.Repeat("X: y\r\n", 1000))), load.Failed, 0, load.CauseHeaderTooLong),
		one("endless interim answers", afterRequest(goesOn(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100))),
			load.Failed, 0, load.CauseHeaderTooLong),
		one("endless body", then(ok+"\r\n", goesOn(strings.Repeat("x", 64<<10))), load.Failed, 200, load.CauseTooLong),
		one("endless chunks", then(chunked, goesOn("10000\r\n"+strings.Repeat("x", 64<<10)+"\r\n")), load.Failed, 200,
			load.CauseTooLong),
		one("endless small chunks", then(chunked, goesOn(strings.Repeat("1;"+strings.Repeat("x", 4000)+"\r\ny\r\n", 16))),
			load.Failed, 200, load.CauseTooLong),
		one("endless chunk extension", then(chunked+"1;", goesOn(strings.Repeat("x", 64<<10))), load.Failed, 200,
			load.CauseBadChunks),
		one("endless trailer", then(chunked+"0\r\n", goesOn(strings.Repeat("X: y\r\n", 1000))), load.Failed, 200,
			load.CauseTrailerTooLong),
		one("length of a terabyte", says(ok+"Content-Length: 1099511627776\r\n\r\nx"), load.Failed, 0, load.CauseTooLong),
		one("length too long", then(ok+"Content-Length: 70000\r\n\r\nshort", hangs), load.Timeout, 0, load.CauseNoEnd),
		one("length too long, closed", then(ok+"Content-Length: 70000\r\n\r\nshort", closes), load.Failed, 200,
			load.CauseClosedWithin),
		one("length too short", each(func(p string) string { return answer(p) + "and more" }), load.OK, 200),
		one("negative length", says(ok+"Content-Length: -5\r\n\r\nok"), load.Failed, 0, load.CauseBadLength),
		one("two lengths", says(ok+"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok"), load.Failed, 0, load.CauseBadLength),
		one("length in words", says(ok+"Content-Length: two\r\n\r\nok"), load.Failed, 0, load.CauseBadLength),
		one("length beyond numbers", says(ok+"Content-Length: 99999999999999999999999\r\n\r\nok"), load.Failed, 0,
			load.CauseBadLength),
		one("no length", then(ok+"Connection: keep-alive\r\n\r\nok", hangs), load.Timeout, 0, load.CauseNoEnd),
		one("body of a HEAD", says(ok+"Content-Length: 9\r\n\r\n"), load.Timeout, 0, load.CauseNoEnd),
		one("chunk size in words", says(chunked+"two\r\nok\r\n0\r\n\r\n"), load.Failed, 200, load.CauseBadChunks),
		one("chunk without its end", says(chunked+"2\r\nok0\r\n\r\n"), load.Failed, 200, load.CauseBadChunks),
		one("chunk beyond numbers", says(chunked+"ffffffffffffffffff\r\nok\r\n0\r\n\r\n"), load.Failed, 200,
			load.CauseBadChunks),
		one("negative chunk", says(chunked+"-1\r\nok\r\n0\r\n\r\n"), load.Failed, 200, load.CauseBadChunks),
		one("unknown coding", says(ok+"Transfer-Encoding: zip\r\n\r\nok"), load.Failed, 0, load.CauseCoding),
	}
}

// turns are answers that are well formed, and not what was asked for, or not when.
func turns() []Server {
	twice := func(gap time.Duration) talker {
		return func(ctx context.Context, c *conn) {
			for {
				p, asked := c.ask()
				if !asked || !c.say(answer(p)) || !pause(ctx, gap) || !c.say(answer("again")) {
					return
				}
			}
		}
	}
	return []Server{
		one("two answers at once", each(func(p string) string { return answer(p) + answer("again") }), load.OK, 200),
		// Once the next request is on its way, a second answer to the one before cannot be told from its own, but by
		// what it says.
		one("a second answer later", twice(2*time.Millisecond), load.OK, 200, 0, load.OwnCauses,
			load.CauseUnasked).either(load.Wrong).either(load.Failed),
		one("an answer before the request", func(ctx context.Context, c *conn) {
			if c.say(answer("early")) {
				good(ctx, c)
			}
		}, load.Failed, 0, load.CauseUnasked, 0, load.OwnCauses).either(load.OK).either(load.Wrong),
		one("redirects in a loop", each(func(p string) string {
			return "HTTP/1.1 302 Found\r\nLocation: /" + p + "\r\nContent-Length: 0\r\n\r\n"
		}), load.Failed, 302, load.CauseRedirect),
		one("continue without an end", then("HTTP/1.1 100 Continue\r\n\r\n", hangs), load.Timeout, 0, load.CauseNoEnd),
		one("switches protocols", says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
			load.Failed, 0, load.CauseSwitching),
		one("no content, with some", says("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"), load.Failed, 204),
		one("compressed unasked", each(zipped), load.Wrong, 200, load.OwnCauses),
		one("another's answer", each(func(p string) string { return answer(p + "0") }), load.Wrong, 200, load.OwnCauses),
	}
}

func zipped(path string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(path))
	_ = w.Close()
	return strings.Replace(answer(b.String()), "\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n", 1)
}
