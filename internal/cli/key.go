package cli

import (
	"path/filepath"

	"tare/internal/record"
)

// key returns this user's key for sealing records. If there can be none, it warns and returns an empty key: records
// without a seal are undone and continued with --yes only.
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
