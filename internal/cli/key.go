package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"tare/internal/record"
)

// key is this user's key for the seals of records; empty, with a word, where there can be none. Records without a seal are undone and resumed with --yes only.
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

// unchanged reports why a record may not go on: its experiment file is not the one that the run began with, or somebody else made the record.
func unchanged(rec *record.Record, key record.Key, yes bool) error {
	file, err := rec.File()
	if err != nil {
		return fmt.Errorf("read the experiment of %s: %w", rec.Dir, err)
	}
	if sum := sha256.Sum256(file); hex.EncodeToString(sum[:]) != rec.Header.Experiment.SHA256 {
		return usage("%s is not the experiment that the run began with: put that back, or run this one anew", filepath.Join(rec.Dir, record.ExperimentFile))
	}
	if !yes && (!rec.Genuine(key) || !madeHere(rec)) {
		return usage("%s was not made on this host by this user, or was changed since; to go on would run what its %s names: read that, and repeat with --yes",
			rec.Dir, record.ExperimentFile)
	}
	return nil
}
