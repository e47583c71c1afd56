package cedarset

import (
	"cmp"
	"errors"

	strict "sigs.k8s.io/json"
)

// decode reads JSON as Cedar does, for which "Args" is not "args". A key that is there twice is refused: readers differ
// in which of the two they take.
func decode(text []byte, into any) error {
	twice, err := strict.UnmarshalStrict(text, into, strict.DisallowDuplicateFields)
	return cmp.Or(err, errors.Join(twice...))
}
