package kit

import (
	"context"
	"encoding/json"

	"tare/area"
)

// Servers returns servers that one function runs, by their names.
func Servers(serve func(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error,
	names ...string,
) map[string]area.Serve {
	out := map[string]area.Serve{}
	for _, name := range names {
		out[name] = func(ctx context.Context, config json.RawMessage, ready func(any) error) error {
			return serve(ctx, name, config, ready)
		}
	}
	return out
}
