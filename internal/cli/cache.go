package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/kit"
	"tare/internal/term"
	"tare/internal/unit"
)

// cacheSchema names the form of 'tare cache -o json'.
const cacheSchema = "tare.cache/v1"

// A builtFolder is a cache folder and the builds in it.
type builtFolder struct {
	Holds  string      `json:"holds"` // "control planes"
	Folder string      `json:"folder"`
	Items  []builtItem `json:"items"`
	of     area.Builds
}

// A builtItem is one build. Used is absent if it is unknown.
type builtItem struct {
	Name  string     `json:"name"`
	State string     `json:"state"`
	Bytes int64      `json:"bytes"`
	Used  *time.Time `json:"used,omitempty"`
	Busy  string     `json:"busy,omitempty"`
}

func (a *app) cacheCommand() *cobra.Command {
	var form string
	c := &cobra.Command{
		Use: "cache", Short: "List what tare has built, and remove what it no longer uses", Args: unknownCommand,
		Long: "Lists the control planes, decision points and Go benchmarks that tare has built on this host, with their\n" +
			"size, the time at which tare last looked for them, and their state:\n\n" +
			"  current     this version of tare uses it\n" +
			"  old         built from other sources or with another Go toolchain: 'tare cache prune' removes it\n" +
			"  unfinished  a build that is running, or was killed\n" +
			"  strange     not marked as made by tare: tare never removes it",
		RunE: func(c *cobra.Command, _ []string) error {
			forms := map[string]func(io.Writer, []builtFolder) error{"json": cacheJSON, "text": cacheText}
			encode, ok := forms[form]
			if !ok {
				return usage("-o %s: unknown format %q; formats are: %s", form, form, strings.Join(sortedKeys(forms), ", "))
			}
			folders, err := a.builtFolders(c.Context())
			if err != nil {
				return err
			}
			for i := range folders {
				if err := folders[i].list(); err != nil {
					return err
				}
			}
			return encode(a.Stdout, folders)
		},
	}
	c.Flags().StringVarP(&form, "output", "o", "text", "format: json or text")
	c.AddCommand(a.cachePruneCommand())
	return c
}

func (a *app) cachePruneCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "prune", Short: "Remove what this version of tare would not use", Args: noArgs,
		Long: "Removes builds from other sources or with another Go toolchain, and the remains of killed builds,\n" +
			"and lists them. It keeps what a process is using, builds that are running, and what tare has looked\n" +
			"for in the last minute.",
		RunE: func(c *cobra.Command, _ []string) error {
			folders, err := a.builtFolders(c.Context())
			if err != nil {
				return err
			}
			return a.prune(folders, all)
		},
	}
	c.Flags().BoolVar(&all, "all", false,
		"remove current builds as well: the next run builds them again, which takes minutes")
	return c
}

// builtFolders returns the caches of all areas, without listing their items.
func (a *app) builtFolders(ctx context.Context) (out []builtFolder, err error) {
	env, err := a.areaEnv(".")
	if err != nil {
		return nil, err
	}
	out = []builtFolder{} // JSON has a list where no area builds anything
	for _, ar := range a.Areas {
		builds := ar.Parts().Builds
		if builds == nil {
			continue
		}
		found, err := builds(ctx, env)
		if err != nil {
			return nil, err
		}
		for _, b := range found {
			out = append(out, builtFolder{Holds: b.Holds, Folder: b.Folder, of: b})
		}
	}
	return out, nil
}

// list fills in the items of the folder.
func (f *builtFolder) list() error {
	items, err := f.of.List()
	if err != nil {
		return fmt.Errorf("list the folder %s: %w", f.Folder, err)
	}
	f.Items = []builtItem{}
	for _, i := range items {
		b := builtItem{Name: i.Name, State: i.State, Bytes: i.Bytes, Busy: i.Busy}
		if !i.Used.IsZero() {
			used := i.Used.UTC().Truncate(time.Second)
			b.Used = &used
		}
		f.Items = append(f.Items, b)
	}
	return nil
}

func cacheJSON(w io.Writer, folders []builtFolder) error {
	return kit.WriteIndented(w, struct {
		Schema  string        `json:"schema"`
		Folders []builtFolder `json:"folders"`
	}{cacheSchema, folders})
}

func cacheText(w io.Writer, folders []builtFolder) error {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	if len(folders) == 0 {
		say("no area of this build of tare builds anything\n")
	}
	for _, f := range folders {
		say("%s in %s\n", f.Holds, f.Folder)
		if len(f.Items) == 0 {
			say("  none\n")
		}
		for _, i := range f.Items {
			used := "last use unknown"
			if i.Used != nil {
				used = "last used " + i.Used.Format("2006-01-02 15:04")
			}
			if i.Busy != "" {
				used += "; " + i.Busy
			}
			say("  %-34s %9s  %-10s  %s\n", i.Name, unit.Bytes(float64(i.Bytes)), i.State, used)
		}
	}
	_, err := io.WriteString(w, term.Plain(b.String()))
	return err
}

// prune removes items and prints which.
func (a *app) prune(folders []builtFolder, all bool) error {
	var freed int64
	for _, f := range folders {
		removed, kept, err := f.of.Prune(all)
		for _, i := range removed {
			a.print("removed %s: %s\n", i.Dir, unit.Bytes(float64(i.Bytes)))
			freed += i.Bytes
		}
		for _, i := range kept {
			a.print("kept    %s: %s\n", i.Dir, i.Busy)
		}
		if err != nil {
			return fmt.Errorf("prune %s: %w", f.Folder, err)
		}
	}
	if freed == 0 {
		a.print("nothing was removed\n")
	} else {
		a.print("freed %s\n", unit.Bytes(float64(freed)))
	}
	return a.lost
}
