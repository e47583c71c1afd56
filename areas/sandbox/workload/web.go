package workload

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
)

// web is how a web server is asked for a file of 4 KiB over a persistent connection.
type web struct{ page []byte }

var _ serverProtocol = web{}

// newWeb writes the file and the server's configuration into dir.
func newWeb(dir, configFile string, config []byte) (web, error) {
	w := web{page: bytes.Repeat([]byte("0123456789abcde\n"), 256)}
	if err := os.MkdirAll(filepath.Join(dir, "html"), 0o755); err != nil {
		return w, err
	}
	for name, data := range map[string][]byte{configFile: config, "html/page": w.page} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return w, err
		}
	}
	return w, nil
}

// greet implements serverProtocol.
func (w web) greet(c *conn) error {
	if _, err := io.WriteString(c, w.request()); err != nil {
		return err
	}
	return w.check(c.lines)
}

// prepare implements serverProtocol.
func (w web) prepare(*conn, string, int) (exchange, error) { return exchange{w.request, w.check}, nil }

// A request is a first line and the rest.
const (
	pageLine = "GET /page HTTP/1.1\r\n"
	pageRest = "Host: localhost\r\n\r\n"
)

func (web) request() string { return pageLine + pageRest }

func (w web) check(lines *bufio.Reader) (err error) {
	answer, err := http.ReadResponse(lines, nil)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, int64(len(w.page))+1))
	switch {
	case err != nil:
		return fmt.Errorf("read answer: %w", err)
	case answer.StatusCode != http.StatusOK:
		return fmt.Errorf("answer %s", answer.Status)
	case !bytes.Equal(body, w.page):
		return fmt.Errorf("a page of %d bytes that is not the file", len(body))
	case answer.Close:
		return errors.New("it does not keep the connection")
	}
	return nil
}
