package config

import (
	"encoding"
	"reflect"

	"tare/internal/unit"
)

func mustRead[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](s string) T {
	var x T
	if err := P(&x).UnmarshalText([]byte(s)); err != nil {
		panic(err)
	}
	return x
}

func dur(s string) unit.Duration    { return mustRead[unit.Duration](s) }
func rate(s string) unit.Rate       { return mustRead[unit.Rate](s) }
func size(s string) unit.Size       { return mustRead[unit.Size](s) }
func percent(s string) unit.Percent { return mustRead[unit.Percent](s) }

func typeOf(v any) reflect.Type { return reflect.TypeOf(v) }

func rates(texts ...string) []unit.Rate {
	var out []unit.Rate
	for _, s := range texts {
		out = append(out, rate(s))
	}
	return out
}
