package sandbox

import "embed"

// files are area.Parts.Files.
//
//go:embed templates words.md
var files embed.FS
