package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"tare/internal/record"
)

// key returns this user's key for sealing records. If there can be none, it warns and returns an empty key: records
// without a seal are undone and resumed with --yes only.
func (a *app) key() record.Key {
	state := a.Getenv("XDG_STATE_HOME")
	if state == "" && a.Getenv("HOME") != "" {
		state = filepath.Join(a.Getenv("HOME"), ".local", "state")
	}
	if state == "" {
		a.tell("the record is not sealed: neither XDG_STATE_HOME nor HOME says where to keep a key\n")
		return nil
	}
	key, err := record.LoadKey(filepath.Join(state, "tare"))
	if err != nil {
		a.tell("the record is not sealed: %v\n", err)
		return nil
	}
	return key
}

// checkUnchanged fails if a record must not be continued: its experiment file has changed since the run began, or
// another user made the record. It returns what it has checked.
func checkUnchanged(rec *record.Record, key record.Key, yes bool) (source, error) {
	file, err := rec.File()
	if err != nil {
		return source{}, fmt.Errorf("read the experiment of %s: %w", rec.Dir, err)
	}
	path := filepath.Join(rec.Dir, record.ExperimentFile)
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != rec.Header.Experiment.SHA256 {
		return source{}, usage("%s has changed since the run began: restore it, or start a new run", path)
	}
	if !yes && (!rec.Genuine(key) || !madeHere(rec)) {
		return source{}, usage("%s was not made by this user on this host, or was changed since; continuing it would run "+
			"the programs that its %s names: read that file, then repeat with --yes",
			rec.Dir, record.ExperimentFile)
	}
	return source{name: path, file: path, text: file}, nil
}
