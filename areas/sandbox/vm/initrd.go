package vm

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tare/internal/files"
)

// An Initrd is the initial file system of a guest: folders, and files of this host at the same or another path.
type Initrd struct { // paths are those in the guest, without the leading slash
	files   map[string]source
	folders map[string]bool
	// bare is the path on this host of the program of which only what is loaded is taken; empty: there is none.
	bare string
}

// source is a file of this host, or a text.
type source struct {
	path string
	text []byte
	mode fs.FileMode
}

// NewInitrd returns an empty file system.
func NewInitrd() *Initrd { return &Initrd{files: map[string]source{}, folders: map[string]bool{}} }

// Put adds a file of this host under an absolute path of the guest.
func (r *Initrd) Put(at, host string) error {
	info, err := os.Stat(host)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", host)
	}
	r.files[key(at)] = source{path: host, mode: info.Mode().Perm()}
	return nil
}

// PutSelf adds this program, which Program has added, under another path. Of it only what is loaded is taken: what
// debuggers read can be a third of it.
func (r *Initrd) PutSelf(at, host string) (err error) {
	if r.bare, err = files.Resolved(host); err != nil {
		return err
	}
	return r.Put(at, r.bare)
}

// Write adds a file with a text.
func (r *Initrd) Write(at string, text []byte, mode fs.FileMode) {
	r.files[key(at)] = source{text: text, mode: mode}
}

// Folder adds an empty folder.
func (r *Initrd) Folder(at string) { r.folders[key(at)] = true }

func key(at string) string { return strings.TrimPrefix(filepath.Clean(at), "/") }

// save writes the file system in the format "newc" of cpio, which the kernel unpacks
// (Documentation/driver-api/early-userspace/buffer-format.rst).
func (r *Initrd) save(w io.Writer) error {
	c := &cpio{w: bufio.NewWriterSize(w, 1<<20), bare: r.bare, links: map[string]uint32{}, inodes: map[string]uint32{}}
	for _, s := range r.files {
		if s.path != "" {
			c.links[s.path]++
		}
	}
	for _, name := range r.names() {
		s, isFile := r.files[name]
		switch {
		case !isFile:
			c.entry(name, dirMode|0o755, nil, 0)
		case s.path == "":
			c.entry(name, fileMode|uint32(s.mode), bytes.NewReader(s.text), int64(len(s.text)))
		default:
			c.file(name, s)
		}
	}
	c.entry("TRAILER!!!", 0, nil, 0)
	if c.err != nil {
		return c.err
	}
	return c.w.Flush()
}

// names lists all files and folders; a folder precedes what is in it.
func (r *Initrd) names() []string {
	all := map[string]bool{}
	add := func(name string) {
		for ; name != "." && name != "" && !all[name]; name = filepath.Dir(name) {
			all[name] = true
		}
	}
	for name := range r.files {
		add(name)
	}
	for name := range r.folders {
		add(name)
	}
	return slices.Sorted(maps.Keys(all))
}

// Save writes the file system to a new file. After an error there is none.
func (r *Initrd) Save(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(r.save(f), f.Close()); err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("write %s: %w", path, withoutPath(err, path)), os.Remove(path))
}

// withoutPath returns the cause of an error about a file that the caller names.
func withoutPath(err error, path string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == path {
		return e.Err
	}
	return err
}

// The kinds of entries (stat(2)).
const (
	fileMode = 0o100000
	dirMode  = 0o040000
)

// cpio writes entries. After an error it writes nothing more.
type cpio struct {
	w     *bufio.Writer
	inode uint32
	err   error
	// links is how many names a file of this host has, and inodes are those that have been written. The content stands
	// with the first name.
	links, inodes map[string]uint32
	bare          string // as of Initrd
}

func (c *cpio) entry(name string, mode uint32, content io.Reader, size int64) {
	c.inode++
	c.write(name, c.inode, 1, mode, content, size)
}

func (c *cpio) write(name string, inode, links, mode uint32, content io.Reader, size int64) {
	if c.err != nil {
		return
	}
	if size > 1<<32-1 {
		c.err = fmt.Errorf("%s has %d bytes: want less than 4 GiB", name, size)
		return
	}
	_, c.err = c.w.WriteString("070701")
	// inode, mode, user, group, links, time, size, four numbers of devices, length of the name, checksum
	for _, n := range []uint32{inode, mode, 0, 0, links, 0, uint32(size), 0, 0, 0, 0, uint32(len(name) + 1), 0} {
		if c.err == nil {
			_, c.err = fmt.Fprintf(c.w, "%08x", n)
		}
	}
	if c.err == nil {
		_, c.err = c.w.WriteString(name + "\x00")
	}
	const header = 110
	c.pad(header + int64(len(name)) + 1)
	if content == nil || c.err != nil {
		return
	}
	n, err := io.Copy(c.w, content)
	if err == nil && n != size {
		err = fmt.Errorf("%s has %d bytes, not %d: it changed meanwhile", name, n, size)
	}
	c.err = err
	c.pad(n)
}

// pad fills up to a multiple of four bytes.
func (c *cpio) pad(n int64) {
	if c.err == nil {
		_, c.err = c.w.Write(make([]byte, (4-n%4)%4))
	}
}

func (c *cpio) file(name string, s source) {
	if c.err != nil {
		return
	}
	mode, links := fileMode|uint32(s.mode), c.links[s.path]
	if inode, written := c.inodes[s.path]; written {
		c.write(name, inode, links, mode, nil, 0)
		return
	}
	f, err := files.ForReading(s.path)
	if err != nil {
		c.err = err
		return
	}
	defer f.Close() //nolint:errcheck // it was only read
	content, size, err := c.content(s, f)
	if err != nil {
		c.err = err
		return
	}
	c.inode++
	c.inodes[s.path] = c.inode
	c.write(name, c.inode, links, mode, content, size)
}

// content is what is taken of an open file.
func (c *cpio) content(s source, f *os.File) (io.Reader, int64, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, err
	case s.path == c.bare:
		return loaded(f, info.Size())
	}
	return f, info.Size(), nil
}

// loaded is what a kernel and a dynamic loader need of a program of 64 bits: its header, which then says that there are
// no sections, and its segments. Sections say where symbols and what debuggers read are, which stand behind these.
func loaded(f io.ReaderAt, size int64) (io.Reader, int64, error) {
	program, err := elf.NewFile(f)
	if err != nil {
		return nil, 0, fmt.Errorf("read the program: %w", err)
	}
	var header elf.Header64
	raw := make([]byte, binary.Size(header))
	if program.Class != elf.ELFCLASS64 {
		return nil, 0, fmt.Errorf("read the program: want one of 64 bits, not %v", program.Class)
	}
	if _, err := f.ReadAt(raw, 0); err != nil {
		return nil, 0, fmt.Errorf("read the program: %w", err)
	}
	if _, err := binary.Decode(raw, program.ByteOrder, &header); err != nil {
		return nil, 0, fmt.Errorf("read the program: %w", err)
	}
	end := int64(header.Phoff) + int64(header.Phnum)*int64(header.Phentsize)
	for _, p := range program.Progs {
		end = max(end, int64(p.Off+p.Filesz))
	}
	if end < int64(len(raw)) || end > size {
		return nil, 0, fmt.Errorf("read the program: its segments end at byte %d of %d", end, size)
	}
	header.Shoff, header.Shnum, header.Shstrndx = 0, 0, 0
	if raw, err = binary.Append(nil, program.ByteOrder, &header); err != nil {
		return nil, 0, err
	}
	rest := io.NewSectionReader(f, int64(len(raw)), end-int64(len(raw)))
	return io.MultiReader(bytes.NewReader(raw), rest), end, nil
}
