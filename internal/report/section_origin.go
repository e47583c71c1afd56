package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"tare/internal/shell"
	"tare/internal/unit"
)

// originSection says where the numbers come from and how to reproduce them; without names the parts of the report that
// the page omits.
func originSection(r *Report, without []string) section {
	t := &grid{Caption: "Environment", table: wordHeads("", "")}
	add := func(name, value string) {
		if value != "" {
			t.add(name, value)
		}
	}
	e, x := &r.Environment, &r.Experiment
	if !r.Started.IsZero() {
		add("started", r.Started.Format(time.RFC3339))
	}
	add("took", unit.Seconds(r.Seconds))
	add("experiment", x.Name)
	add("file", x.File)
	add("SHA-256 of the file", x.SHA256)
	add("seed", fmt.Sprint(x.Seed))
	add("area", r.Area)
	add("question", string(r.Question))
	add("host", e.Host)
	add("kernel", e.Kernel)
	if e.CPUs > 0 {
		add("CPUs", fmt.Sprint(e.CPUs))
	}
	add("measured with", version(r))
	add("Go", e.Go)
	for _, k := range slices.Sorted(maps.Keys(e.Target)) {
		add(k, e.Target[k])
	}
	var blocks []block
	if where := e.where(); where != "" {
		blocks = append(blocks, block{In: inWords, Closing: true, Said: []remark{{Word: "measured", Text: "on " + where}}})
	}
	blocks = append(blocks, only(onPage, tabular(t)...)...)
	if next := r.next(); len(next) > 0 {
		said := list{Word: "next", Items: next}
		blocks = append(append(blocks, block{Heading: "Next", In: titled}), closing(listOf(said))...)
	}
	blocks = append(blocks, only(onPage, reproduce(r, without)...)...)
	return section{Question: "Where was this measured, and how can I reproduce it?", Short: "Reproduce", Blocks: blocks}
}

// version returns the version of tare that measured.
func version(r *Report) string {
	v := orElse(r.Tool.Version, r.Environment.Tare)
	if v == "" {
		return ""
	}
	if r.Tool.Commit != "" {
		return "tare " + v + " (" + r.Tool.Commit + ")"
	}
	return "tare " + v
}

// reproduce returns the command that repeats the experiment.
func reproduce(r *Report, without []string) []block {
	file, holds := fileWord(r.Experiment.File), "The run's folder holds the file as it was"
	switch {
	case r.Experiment.File == "" && r.Experiment.SHA256 == "":
		return nil
	case r.Experiment.File == "":
		file, holds = "RUN/experiment.yaml", "RUN is the run's folder, which holds the experiment as it was, with what the "+
			"command line changed"
	}
	var lines []string
	if r.Experiment.SHA256 != "" {
		lines = append(lines, "sha256sum "+file+"   # "+r.Experiment.SHA256)
	}
	lines = append(lines, "tare run "+file)
	page := "The whole report is in this page, too, in the form of “-o json”: the element with the id “report”."
	if len(without) > 0 {
		page = "The report is in this page, too, in the form of “-o json” but for its " + listed(without) +
			", which would make the page too large: the element with the id “report”."
	}
	return []block{
		{Heading: "Run it again"},
		{Code: strings.Join(lines, "\n")},
		{Text: fmt.Sprintf("With the line “seed: %d” in the file, order, arrivals and mix are drawn as they were here. "+
			"%s, and “tare report” computes this page again from the record there. %s", r.Experiment.Seed, holds, page)},
	}
}

// fileWord returns the name of a file as a word of a shell, which is no option.
func fileWord(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return shell.Word(name)
}
