// Package toy has two small areas for tests of the core, which knows no real one: Area makes calls to a server, and
// Timer passes time in batches. Together they have one of everything that an area may have.
package toy

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"tare/area"
	"tare/internal/build"
	"tare/internal/kit"
)

//go:embed templates
var files embed.FS

// Areas returns both areas.
func Areas() []area.Area { return []area.Area{Area{}, Timer{}} }

// Area makes calls to a server, at any rate: the one at an address, or its own, a child process.
type Area struct{}

var _ area.Area = Area{}

const areaName = "toy"

// Name implements area.Area, as do the others.
func (Area) Name() string       { return areaName }
func (Area) NewSpec() area.Spec { return &Spec{} }

// Offers implements area.Area.
func (Area) Offers() area.Offers {
	return area.Offers{AnyRate: area.Yes, SteadyLoad: area.Yes, Trespasses: area.Yes}
}

// Preflight implements area.Area: a run needs its secret.
func (Area) Preflight(_ context.Context, s area.Spec, env area.Env) []area.Finding {
	if _, err := s.(*Spec).Key.Resolve(env.Getenv); err != nil {
		return []area.Finding{area.Fault("key", err, "")}
	}
	return nil
}

// Open implements area.Area.
func (Area) Open(_ context.Context, s area.Spec, env area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return nil, err
	}
	return &target{spec: spec, env: env, children: map[string]*child{}}, nil
}

// Undo implements area.Area.
func (Area) Undo(_ context.Context, changes []area.Change, _ area.Env) error {
	return kit.UndoEach(changes, kit.KillProcess)
}

// Parts implements area.Area.
func (Area) Parts() area.Parts {
	return area.Parts{
		Servers:  map[string]area.Serve{serverName: serve},
		Adapters: []area.Adapter{{Name: adapter, Help: "GET " + path + " with a key"}},
		Presets:  []area.Named{{Name: "own", Help: "a server of the toy's own"}},
		Clues:    clues(), Commands: commands, Builds: builds, Files: files,
	}
}

const (
	adapter = "toy-http"
	path    = "/toy"
)

// clues are one that tells for sure, and one that takes any good answer.
func clues() []area.Clue {
	return []area.Clue{
		{Path: path, Tells: func(u *url.URL, h area.Heard) (s area.Spoken, err error) {
			if version := h.Text(areaName); h.Status == 200 && version != "" {
				s = area.Spoken{Adapter: adapter, URL: u.String(), Evidence: "GET " + path + " is answered by a toy, version " +
					version}
			}
			return s, nil
		}},
		{Last: true, Instead: "look whether it is a toy", Tells: func(u *url.URL, h area.Heard) (s area.Spoken, err error) {
			if h.Status == 200 {
				s = area.Spoken{Adapter: adapter, URL: u.String(), Options: "  key: {env: TOY_KEY}\n", Evidence: "it answers"}
			}
			return s, nil
		}},
	}
}

// commands are `tare toy echo`.
func commands() []area.Command {
	var loud bool
	return []area.Command{{
		Use: areaName, Short: "Play", Group: area.ThisHost,
		Below: []area.Command{{
			Use: "echo WORD", Short: "Print a word", Least: 1, Most: 1,
			Flags: func(f *flag.FlagSet) { f.BoolVar(&loud, "loud", false, "in capital letters") },
			Run: func(_ context.Context, sh *area.Shell, args []string) error {
				if args[0] == "nothing" {
					return area.Usage("there is nothing to print")
				}
				if loud {
					args[0] = strings.ToUpper(args[0])
				}
				sh.Print("%s\n", args[0])
				return nil
			},
		}},
	}}
}

// builds are in the folder toys of the cache, where "1" is current.
func builds(_ context.Context, env area.Env) ([]area.Builds, error) {
	cache := build.Cache{Sub: "toys", Getenv: kit.Environment(env.Getenv)}
	return kit.Builds("toys", cache, build.Survey{
		Wanted: func(name string) bool { return name == "1" },
		Now:    env.Clock.Now(),
	})
}

// Timer does nothing in batches for as long as it is asked to, and says so: what it reports depends on no host. A run
// makes a folder for it, and removes that.
type Timer struct{}

var _ area.Area = Timer{}

const timerName = "timer"

// Name implements area.Area, as do the others.
func (Timer) Name() string       { return timerName }
func (Timer) NewSpec() area.Spec { return &TimerSpec{} }

// Offers implements area.Area.
func (Timer) Offers() area.Offers {
	const why = "a batch has its own pace, so no queue can overflow"
	return area.Offers{AnyRate: area.No(why), SteadyLoad: area.No(why), Trespasses: area.No(why)}
}

// Preflight implements area.Area.
func (Timer) Preflight(context.Context, area.Spec, area.Env) []area.Finding { return nil }

// Open implements area.Area.
func (Timer) Open(_ context.Context, s area.Spec, env area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*TimerSpec](s)
	if err != nil {
		return nil, err
	}
	return &timer{spec: spec, env: env}, nil
}

// Undo implements area.Area.
func (Timer) Undo(_ context.Context, changes []area.Change, _ area.Env) error {
	return kit.UndoEach(changes, removeFolder)
}

// Parts implements area.Area.
func (Timer) Parts() area.Parts { return area.Parts{} }

const folderPrefix = "tare-timer-"

// removeFolder removes a journaled folder; another's it refuses.
func removeFolder(c area.Change) error {
	dir := c.Data["path"]
	if !filepath.IsAbs(dir) || !strings.HasPrefix(filepath.Base(dir), folderPrefix) {
		return fmt.Errorf("%q is no folder of a timer", dir)
	}
	if err := os.Remove(dir); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
