package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

func text(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }

// TestOutput writes files where a user wants them, under paths as users write them.
func TestOutput(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must(t, os.MkdirAll("real/below", 0o700), os.Symlink("real/below", "link"), os.Symlink(dir+"/real", "whole"))
	for path, at := range map[string]string{
		"a": "a", "./b": "b", "real/../c": "c", "link/d": "real/below/d", "link/../e": "real/e", "whole/f": "real/f",
		dir + "/link/./g": "real/below/g", "../" + filepath.Base(dir) + "/h": "h",
	} {
		for name, save := range map[string]func(string, func(io.Writer) error) error{"Save": Save, "SaveNew": SaveNew} {
			must(t, save(path, text))
			have(t, at)
			info, err := os.Stat(at)
			if must(t, err); info.Mode().Perm() != 0o644 {
				t.Errorf("%s %s: mode %v", name, path, info.Mode())
			}
			if err := SaveNew(path, text); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s: new once more: %v", path, err)
			}
			must(t, Save(path, text), os.Remove(at))
		}
		f, err := ForAppending(path)
		must(t, err, text(f), f.Close())
		have(t, at)
	}
	failed := errors.New("no text")
	if err := Save("a", func(io.Writer) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("a text that cannot be had: %v", err)
	}
	have(t, "a") // it is as it was
	if left, err := filepath.Glob(".tare-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	for path, want := range map[string]string{
		"real": "is a directory", "none/a": "no such file", "a/b": "not a directory", "": "no such file",
	} {
		if err := Save(path, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	must(t, MakeForAll("for/all"), MakeForAll("for/all"))
	info, err := os.Stat("for")
	if must(t, err); info.Mode().Perm() != 0o755 {
		t.Errorf("a folder for all: %v", info.Mode())
	}
}

// TestOutputIntoPipes: a pipe or a device is written, and stays what it is.
func TestOutputIntoPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	if err := Save(pipe, text); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a pipe without a reader: %v", err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close() //nolint:errcheck // it is only read
	must(t, Save(pipe, text))
	if got, err := io.ReadAll(reader); err != nil || string(got) != "text" {
		t.Errorf("the pipe had %q, %v", got, err)
	}
}

// TestOutputIntoDescriptors: what the shell has opened is written, and no name is made beside it.
func TestOutputIntoDescriptors(t *testing.T) {
	at := filepath.Join(t.TempDir(), "redirected")
	file, err := os.Create(at)
	must(t, err)
	defer file.Close() //nolint:errcheck // it is read below
	must(t, Save(fmt.Sprintf("/dev/fd/%d", file.Fd()), text))
	have(t, at)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink("/dev/null", link), Save(link, text))
	if is, err := os.Lstat(link); err != nil || is.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("a link to a device: %v, %v", is, err)
	}
}

// TestOutputFollowsNoStranger: nothing is written, made or opened through a link of another user's.
func TestOutputFollowsNoStranger(t *testing.T) {
	hosttest.NeedsRoot(t)
	dir, ours := t.TempDir(), t.TempDir()
	put(t, ours+"/file")
	must(t, unix.Mkfifo(ours+"/pipe", 0o600))
	reader, err := os.OpenFile(ours+"/pipe", os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	defer reader.Close() //nolint:errcheck // it is only read
	for name, to := range map[string]string{"folder": ours, "file": ours + "/file", "pipe": ours + "/pipe"} {
		must(t, os.Symlink(to, dir+"/"+name), os.Lchown(dir+"/"+name, nobody, nobody))
	}
	must(t, os.Chown(dir, nobody, nobody), os.WriteFile(dir+"/known", nil, 0o600))
	open := func(f *os.File, err error) error {
		if err == nil {
			err = f.Close()
		}
		return err
	}
	folder := func(f *Folder, err error) error {
		if err == nil {
			err = f.Close()
		}
		return err
	}
	for name, err := range map[string]error{
		"Save":         Save(dir+"/folder/file", text),
		"SaveNew":      SaveNew(dir+"/folder/new", text),
		"ForAppending": open(ForAppending(dir + "/folder/file")),
		"MakeForAll":   MakeForAll(dir + "/folder/new"),
		"New":          folder(New(dir+"/folder", "new")),
		"MakeLeaf":     folder(MakeLeaf(dir + "/folder/new")),
		"At":           folder(At(dir + "/folder")),
		"RemoveAt":     RemoveAt(dir + "/folder/new"),
		"MakeNew":      MakeNew(dir + "/new"), // which another user could replace
	} {
		if _, ok := errors.AsType[*NotOursError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := open(ForAppending(dir + "/file")); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link in the place of a file: %v", err)
	}
	have(t, ours+"/file")
	if all, err := os.ReadDir(ours); err != nil || len(all) != 2 {
		t.Errorf("made: %v, %v", all, err)
	}
	must(t, Save(dir+"/file", text), Save(dir+"/known", text), folder(New(dir+"/results", "record")))
	must(t, Save(dir+"/pipe", text))
	if got, err := io.ReadAll(reader); err != nil || len(got) > 0 {
		t.Errorf("the pipe had %q, %v", got, err)
	}
	have(t, dir+"/pipe")
	have(t, dir+"/file") // in the place of the link
	have(t, dir+"/known")
	have(t, ours+"/file")
}
