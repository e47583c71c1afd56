package proc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"tare/internal/proc"
)

func TestServeEndsWithStdin(t *testing.T) {
	r, w := io.Pipe()
	var out bytes.Buffer
	done := make(chan error, 1)
	running := make(chan struct{})
	go func() {
		done <- proc.Serve(t.Context(), r, &out, func(ctx context.Context, raw json.RawMessage, ready func(any) error) error {
			if string(raw) != `{"a":1}`+"\n" && string(raw) != `{"a":1}` {
				t.Errorf("config = %q", raw)
			}
			if err := ready("here"); err != nil {
				return err
			}
			close(running)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), proc.ErrParentGone) {
				t.Errorf("cause = %v, want ErrParentGone", context.Cause(ctx))
			}
			return ctx.Err()
		})
	}()
	if _, err := io.WriteString(w, `{"a":1}`+"\n"); err != nil {
		t.Fatal(err)
	}
	<-running
	select {
	case err := <-done:
		t.Fatalf("Serve ended with stdin open: %v", err)
	default:
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve = %v, want nil when the parent is gone", err)
	}
	if got, want := out.String(), `{"ready":"here"}`+"\n"; got != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}

func TestServeErrors(t *testing.T) {
	work := func(context.Context, json.RawMessage, func(any) error) error { return errors.New("port is taken") }
	for _, c := range []struct{ stdin, want string }{
		{"", "not by hand"},
		{"{", "not by hand"},
		{"{\n", "read config from stdin"},
		{"{}\n", "port is taken"},
	} {
		err := proc.Serve(t.Context(), strings.NewReader(c.stdin), io.Discard, work)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("stdin %q: error %v, want %q", c.stdin, err, c.want)
		}
	}
}
