package sandbox

import "embed"

// embedded are area.Parts.Files.
//
//go:embed templates words.md
var embedded embed.FS
