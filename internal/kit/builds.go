package kit

import (
	"fmt"

	"tare/area"
	"tare/internal/build"
)

// Builds returns the builds of one cache folder.
func Builds(holds string, cache build.Cache, survey build.Survey) ([]area.Builds, error) {
	folder, err := cache.Folder()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder: %w; set %s to name one", err, build.Variable)
	}
	return []area.Builds{{
		Holds: holds, Folder: folder,
		List: func() ([]area.Build, error) {
			items, err := cache.Items(survey)
			return listed(items), err
		},
		Prune: func(all bool) (removed, kept []area.Build, err error) {
			gone, left, err := cache.Prune(survey, all)
			return listed(gone), listed(left), err
		},
	}}, nil
}

func listed(items []build.Item) (out []area.Build) {
	for _, i := range items {
		out = append(out, area.Build{
			Name: i.Name, Dir: i.Dir, State: string(i.State), Bytes: i.Bytes, Used: i.Used,
			Busy: i.Busy,
		})
	}
	return out
}
