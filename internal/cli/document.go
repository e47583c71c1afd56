package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/term"
)

// The schemas of what commands print with -o json; docs/reference/outputs.md describes them.
const (
	schemaValidate = "tare.validate/v1"
	schemaList     = "tare.list/v1"
	schemaPlan     = "tare.plan/v1"
)

// A form is the format of a command's result: text or json.
type form string

func (f *form) add(c *cobra.Command) {
	c.Flags().StringVarP((*string)(f), "output", "o", "text", "format: json or text")
}

// json reports whether JSON is asked for; it fails for an unknown format.
func (f form) json() (bool, error) {
	if f != "text" && f != "json" {
		return false, usage("-o %s: unknown format %q; formats are: json, text", f, string(f))
	}
	return f == "json", nil
}

// printJSON writes a document to standard output.
func (a *app) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	a.print("%s\n", term.JSON(string(text)))
	return a.lost
}

// A validation is the result of tare validate.
type validation struct {
	Schema string          `json:"schema"`
	OK     bool            `json:"ok"`
	Files  []validatedFile `json:"files"`
}

type validatedFile struct {
	File        string       `json:"file"`
	OK          bool         `json:"ok"`
	Error       string       `json:"error,omitempty"`   // why it cannot be read
	Untried     string       `json:"untried,omitempty"` // what validating leaves open: "its program was not started"
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	config.Diagnostic

	Severity string `json:"severity"`
}

// validation checks files and writes nothing.
func (a *app) validation(files []string) validation {
	out := validation{Schema: schemaValidate, OK: true}
	for _, file := range files {
		f := validatedFile{File: file, OK: true, Diagnostics: []diagnostic{}}
		src, err := a.read(file)
		if err != nil {
			f.OK, f.Error = false, err.Error()
		} else {
			e, ds := config.Parse(src.name, src.text, a.Areas)
			if f.OK = !config.HasErrors(ds); f.OK {
				f.Untried = untried(e)
			}
			for _, d := range ds {
				f.Diagnostics = append(f.Diagnostics, diagnostic{d, d.Severity.String()})
			}
		}
		out.OK = out.OK && f.OK
		out.Files = append(out.Files, f)
	}
	return out
}

// A planDocument is the result of tare plan.
type planDocument struct {
	Schema     string             `json:"schema"`
	Name       string             `json:"name"`
	Area       string             `json:"area"`
	Question   string             `json:"question"`
	Treatments []design.Treatment `json:"treatments"`
	Blocks     int                `json:"blocks,omitempty"`             // at most
	Takes      float64            `json:"all_blocks_seconds,omitempty"` // about; without blocks absent
	Peak       float64            `json:"peak_per_second,omitempty"`    // absent if it is not bounded
	Budget     []string           `json:"budget,omitempty"`
	Lines      []planLine         `json:"lines"` // the plan in words
	Findings   []planFinding      `json:"findings"`
	Tried      bool               `json:"tried"`              // the host and the targets were asked; if not, there are no findings
	Runnable   *bool              `json:"runnable,omitempty"` // no finding is an error; absent where nothing was tried
}

type planLine struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

type planFinding struct {
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Next     string `json:"next,omitempty"`
}

// planDocumentOf describes an experiment without what is in words. tried: found is what was found by trying.
func planDocumentOf(e *config.Experiment, found []area.Finding, tried bool) planDocument {
	out := planDocument{
		Schema: schemaPlan, Name: e.Name, Area: e.Area, Question: string(e.Question), Blocks: e.Blocks, Peak: e.Peak(),
		Treatments: e.Arms(), Budget: e.Budget, Findings: []planFinding{}, Tried: tried,
	}
	if tried {
		runnable := isRunnable(found)
		out.Runnable = &runnable
	}
	for _, f := range found {
		out.Findings = append(out.Findings, planFinding{f.Severity.String(), f.Message, f.Hint})
	}
	return out
}
