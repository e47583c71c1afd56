package decision

import "embed"

// files are area.Parts.Files.
//
//go:embed templates
var files embed.FS
