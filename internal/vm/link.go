package vm

import "io"

// link joins the two directions of a serial line.
type link struct {
	io.Reader
	io.Writer
}

func newLink(r io.Reader, w io.Writer) io.ReadWriter { return link{r, w} }
