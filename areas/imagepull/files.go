package imagepull

import "embed"

// embeddedFiles are area.Parts.Files.
//
//go:embed templates words.md
var embeddedFiles embed.FS
