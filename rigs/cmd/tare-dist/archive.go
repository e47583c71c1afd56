package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"time"
)

// An entry is a file of an archive, or a folder if its name ends with "/".
type entry struct {
	name    string
	content []byte
	mode    int64 // 0 is 0644
	owner   int
}

// archive returns a tar of the entries, by name, that depends on nothing but them and the date.
func archive(entries []entry, date time.Time, zip bool) []byte {
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: e.mode, Uid: e.owner, Gid: e.owner,
			ModTime: date, Format: tar.FormatUSTAR,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		must(w.WriteHeader(h))
		_, err := w.Write(e.content)
		must(err)
	}
	must(w.Close())
	if zip {
		return compress(b.Bytes())
	}
	return b.Bytes()
}

// compress leaves the name and the time out of gzip's header.
func compress(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(err)
	_, err = w.Write(content)
	must(err)
	must(w.Close())
	return b.Bytes()
}

// must ends the program on errors that writing into memory does not have.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
