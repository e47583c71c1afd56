// Package replica makes copies of the data that policies decide by, under other names, so that it can be seen what more
// of it costs.
package replica

import (
	"errors"
	"fmt"
	"strconv"
)

// A Data says which data are there how often.
type Data struct {
	// Of are the collections that are copied: for OPA their places in the bundle's data, for Cedar and OpenFGA the types
	// of the entities, none for all.
	Of []string `yaml:"of,omitempty" json:"of,omitempty" jsonschema:"maxItems=50" jsonschema_description:"What grows. For opa places in the bundle's data: users (a map, whose keys are names), bindings[].user (a list, whose entries are told apart by user), admins[] (a list of names). For cedar and openfga types of entities, such as User; default: all."`
	// Times is how often they are there.
	Times int `yaml:"times,omitempty" json:"times,omitempty" jsonschema:"minimum=1,maximum=1000000" jsonschema_description:"How often the data are there: 1 (default) as they are; 10: with nine copies of each entry under names of their own."`
}

// MostTimes bounds Times.
const MostTimes = 1_000_000

// mostEntries and mostBytes bound what there is with all copies: entries, and their text.
const (
	mostEntries = 1_000_000
	mostBytes   = 256 << 20
)

// Grows reports whether there are copies to make.
func (d *Data) Grows() bool { return d != nil && d.Times > 1 }

// Check says what is wrong about copies of entries, which are so many and have so many bytes of text.
func (d *Data) Check(entries, bytes int) error {
	switch {
	case entries == 0:
		return errors.New("there is nothing that could grow")
	case entries > mostEntries/max(1, d.Times):
		return fmt.Errorf("%d entries %d times are more than %d", entries, d.Times, mostEntries)
	case bytes > mostBytes/max(1, d.Times):
		return fmt.Errorf("%d bytes of data %d times are more than %d MiB", bytes, d.Times, mostBytes>>20)
	}
	return nil
}

// Name is how a copy, by its number from 2, calls what has a name.
func Name(name string, number int) string { return name + "~" + strconv.Itoa(number) }
