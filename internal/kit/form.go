package kit

import (
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/term"
)

// Form returns the encoder of a format, or what formats there are.
func Form[V any](form string, forms map[string]V) (V, error) {
	encode, ok := forms[form]
	if !ok {
		return encode, area.Usage("-o %s: unknown format %q; formats are: %s", form, form,
			strings.Join(slices.Sorted(maps.Keys(forms)), ", "))
	}
	return encode, nil
}

// WriteIndented writes a value as indented JSON.
func WriteIndented(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, term.JSON(string(b))+"\n")
	return err
}
