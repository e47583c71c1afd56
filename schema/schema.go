// Package schema holds the JSON Schemas of the formats that others may rely on. That of experiment files depends on the
// areas of a binary, which makes it itself: tare schema.
package schema

import _ "embed" // for the schema

// Report is the JSON Schema of reports in JSON.
//
//go:embed report.v1.json
var Report []byte
