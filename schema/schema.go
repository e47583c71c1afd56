// Package schema holds the JSON Schemas of the formats that others may rely on.
package schema

import _ "embed" // for the schemas

// Experiment is the JSON Schema of experiment files, generated from the structs that read them.
//
//go:embed experiment.v1.json
var Experiment []byte

// Report is the JSON Schema of reports in JSON.
//
//go:embed report.v1.json
var Report []byte
