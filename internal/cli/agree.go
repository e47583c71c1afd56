package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"slices"

	"tare/internal/record"
)

// A purpose is what the user wants with a record.
type purpose string

const (
	toUndo     purpose = "undo"
	toContinue purpose = "continue"
)

// agreed fails if a record must not be acted upon: this user did not make it on this host, or what would be done was
// changed since, and yes is not the number of all that would be done. It then shows that, with its number.
func (a *app) agreed(rec *record.Record, key record.Key, want purpose, yes string) error {
	if madeHere(rec) && rec.Genuine(key) && (len(rec.Pending()) == 0 || rec.Sealed(key)) {
		return nil
	}
	number, err := numberOf(rec, want)
	if err != nil || yes == number {
		return err
	}
	a.showForeign(rec, want)
	if yes != "" {
		return usage("nothing was done: --yes %s is not the number of that; if you want all of that, repeat with --yes %s",
			yes, number)
	}
	return usage("nothing was done; if you want all of that, repeat with --yes %s", number)
}

// numberOf returns a number of what would be done with a record, which differs for all else.
func numberOf(rec *record.Record, want purpose) (string, error) {
	text, err := json.Marshal([]any{want, rec.Header.Area, rec.Header.Experiment.SHA256, rec.Pending()})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), err
}

// showForeign prints what would be done with a record that this user did not make on this host.
func (a *app) showForeign(rec *record.Record, want purpose) {
	a.print("%s was not made on this host by this user, or was changed since. To %s it, as one of area %q, would mean:\n",
		rec.Dir, want, rec.Header.Area)
	if want == toContinue {
		a.print("  to run the programs that its %s names (read that file)\n", record.ExperimentFile)
	}
	for _, c := range rec.Pending() {
		a.print("  to undo %q %q of area %q\n", c.Kind, c.ID, c.Area)
		for _, name := range slices.Sorted(maps.Keys(c.Data)) {
			a.print("    %q: %q\n", name, c.Data[name])
		}
	}
}

// madeHere reports whether the record was made on a host with this one's name; an older record may not say.
func madeHere(rec *record.Record) bool {
	name, err := os.Hostname()
	return err != nil || rec.Header.Host.Name == "" || rec.Header.Host.Name == name
}
