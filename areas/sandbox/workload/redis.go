package workload

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// redis is how a redis-server is asked, in RESP (redis.io/docs/reference/protocol-spec).
type redis struct {
	set bool // the last request of the kind "redis" was a SET
}

var _ serverProtocol = (*redis)(nil)

// newRedis returns a redis-server without persistence.
func newRedis(dir string, connections int) (*Daemon, error) {
	program, err := installed("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	return &Daemon{
		Name: "redis", Dir: dir, protocol: &redis{}, Command: []string{
			program, "--port", "0", "--unixsocket", socketFile, "--unixsocketperm", "700",
			"--save", "", "--appendonly", "no", "--daemonize", "no", "--dir", ".", "--loglevel", "warning",
			"--maxclients", strconv.Itoa(connections + spareConnections),
		},
	}, nil
}

// spareConnections are how many more connections a daemon accepts than are made, while it closes the last ones.
const spareConnections = 64

// resp returns a request, or with a single word a bulk string, which is an answer.
func resp(words ...string) string {
	var b strings.Builder
	if len(words) > 1 {
		fmt.Fprintf(&b, "*%d\r\n", len(words))
	}
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

// The requests. The value and each element have 64 bytes.
var (
	redisKey, redisValue = "tare", strings.Repeat("v", 64)
	redisSet             = resp("SET", redisKey, redisValue)
	redisGet             = resp("GET", redisKey)
	redisPop             = resp("LPOP", redisList)
)

const (
	redisList = "list"
	redisOK   = "+OK\r\n"
)

// greet implements serverProtocol.
func (*redis) greet(c *conn) error { return ask(c, "*1\r\n$4\r\nPING\r\n", "+PONG\r\n") }

// prepare implements serverProtocol.
func (r *redis) prepare(c *conn, kind string, n int) (exchange, error) {
	value := resp(redisValue)
	switch kind {
	case "redis-lpop":
		return r.prepareList(c, n)
	case "redis-set":
		return exchange{func() string { return redisSet }, func(a *bufio.Reader) error { return compare(a, redisOK) }}, nil
	case "redis-get":
		e := exchange{func() string { return redisGet }, func(a *bufio.Reader) error { return compare(a, value) }}
		return e, ask(c, redisSet, redisOK)
	case "redis":
		return r.alternate(value), ask(c, redisSet, redisOK)
	}
	return exchange{}, fmt.Errorf("redis has no requests %.40q", kind)
}

// alternate returns a SET and a GET in turn.
func (r *redis) alternate(value string) exchange {
	wantsSet := r.set
	return exchange{
		func() string {
			if r.set = !r.set; r.set {
				return redisSet
			}
			return redisGet
		},
		func(a *bufio.Reader) error {
			if wantsSet = !wantsSet; wantsSet {
				return compare(a, redisOK)
			}
			return compare(a, value)
		},
	}
}

// prepareList fills the list with n elements, of which each must be popped once. Answers on several connections come in
// any order. That the list is as long as it should be after it has been filled shows that all before were popped.
func (r *redis) prepareList(c *conn, n int) (exchange, error) {
	const most = 500 // in one request
	for have := 0; have < n; {
		words := []string{"RPUSH", redisList}
		for range min(most, n-have) {
			words = append(words, fmt.Sprintf("%064d", have))
			have++
		}
		if err := ask(c, resp(words...), fmt.Sprintf(":%d\r\n", have)); err != nil {
			return exchange{}, fmt.Errorf("fill the list: %w", err)
		}
	}
	popped := make([]bool, n)
	return exchange{func() string { return redisPop }, func(a *bufio.Reader) error {
		head, err := a.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		if string(head) != "$64\r\n" {
			return fmt.Errorf("answer %.80q instead of an element of 64 bytes", head)
		}
		var body [66]byte
		if _, err := io.ReadFull(a, body[:]); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		i, err := strconv.Atoi(string(body[:64]))
		if err != nil || i < 0 || i >= n || popped[i] {
			return fmt.Errorf("answer %.80q: not an element of the list, or popped before", body)
		}
		popped[i] = true
		return nil
	}}, nil
}

// ask sends a request and compares the answer. A server that refuses the connection gives its reason and closes it,
// which may be before the request: then the reason is the error, not the broken pipe.
func ask(c *conn, request, want string) error {
	if _, err := io.WriteString(c, request); err != nil {
		if reason, _ := c.lines.ReadSlice('\n'); len(reason) > 0 {
			return fmt.Errorf("answer %.80q instead of %.80q", reason, want)
		}
		return err
	}
	return compare(c.lines, want)
}

// compare reads an answer, which is as long as its first line says.
func compare(answer *bufio.Reader, want string) error {
	first, err := answer.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	rest, ok := strings.CutPrefix(want, string(first))
	if !ok {
		return fmt.Errorf("answer %.80q instead of %.80q", first, want)
	}
	body := make([]byte, len(rest))
	if _, err := io.ReadFull(answer, body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if !bytes.Equal(body, []byte(rest)) {
		return fmt.Errorf("answer %.80q instead of %.80q", body, rest)
	}
	return nil
}
