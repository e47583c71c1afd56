package kit

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"tare/area"
	"tare/internal/design"
	"tare/internal/secretfile"
)

// ExposedSecrets warns of files, named in the sections of all treatments, that other users can read. It ignores files
// that cannot be opened: whoever needs them will report that.
func ExposedSecrets(s area.Spec, treatments []design.Treatment) (out []area.Finding) {
	var paths []string
	for _, section := range Specs(s, treatments) {
		for _, x := range SecretsOf(section) {
			paths = append(paths, x.File)
		}
		paths = append(paths, section.Says().SecretFiles...)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		if path == "" {
			continue
		}
		if w, ok := secretfile.Exposed(path); ok {
			out = append(out, area.Finding{Severity: area.Warning, Message: w.Message, Hint: w.Hint})
		}
	}
	return out
}

// SecretsOf returns the secrets in a section of a file, each once.
func SecretsOf(section any) []area.Secret { return secretsOf(section, nil) }

// SentSecrets returns the secrets that are sent over the network, each once: all but the private keys of TLS.
func SentSecrets(section any) []area.Secret { return secretsOf(section, reflect.TypeFor[TLS]()) }

func secretsOf(section any, except reflect.Type) []area.Secret {
	found := map[area.Secret]bool{}
	collectSecrets(reflect.ValueOf(section), except, found)
	delete(found, area.Secret{})
	return slices.SortedFunc(maps.Keys(found), func(a, b area.Secret) int {
		return strings.Compare(a.String(),
			b.String())
	})
}

func collectSecrets(v reflect.Value, except reflect.Type, into map[area.Secret]bool) {
	switch v.Kind() { //nolint:exhaustive // nothing else holds any
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			collectSecrets(v.Elem(), except, into)
		}
	case reflect.Slice:
		for i := range v.Len() {
			collectSecrets(v.Index(i), except, into)
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			collectSecrets(v.MapIndex(key), except, into)
		}
	case reflect.Struct:
		if x, ok := reflect.TypeAssert[area.Secret](v); ok {
			into[x] = true
			return
		}
		if v.Type() == except {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collectSecrets(v.Field(i), except, into)
			}
		}
	}
}
