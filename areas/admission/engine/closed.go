package engine

import (
	_ "embed"
	"strings"

	"tare/internal/build"
)

//go:embed door/door.go
var doorSource string

// doorFolder is where a module is given the package door.
const doorFolder = "pkg/taredoor"

// A served is a text of a program that starts a server, and the one that has it answer this user alone: Kyverno and
// Gatekeeper know no credentials, and every user of the host reaches loopback.
type served struct{ file, open, shut string }

var (
	kyvernoServed = []served{
		{"pkg/webhooks/server.go", `s.server.ListenAndServeTLS("", "")`, `taredoor.Shut(s.server).ListenAndServeTLS("", "")`},
		{"cmd/internal/metrics.go", "server.ListenAndServe()", "taredoor.Shut(server).ListenAndServe()"},
	}
	// gatekeeperServed: its health says nothing of others, and its metrics are not served.
	gatekeeperServed = []served{{
		"main.go", "crWebhook.NewServer(serverOpts)", `crWebhook.NewServer(func() crWebhook.Options {
	serverOpts.TLSOpts = append(serverOpts.TLSOpts, taredoor.ShutTLS)
	return serverOpts
}())`,
	}}
)

// shut are the edits of a module by which servers answer this user alone.
func shut(module string, all []served) []build.Edit {
	source := strings.Replace(doorSource, "package door", "package taredoor", 1)
	out := []build.Edit{{File: doorFolder + "/door.go", New: source}}
	const imports = "import (\n"
	for _, s := range all {
		out = append(out, build.Edit{File: s.file, Old: s.open, New: s.shut},
			build.Edit{File: s.file, Old: imports, New: imports + "\ttaredoor \"" + module + "/" + doorFolder + "\"\n"})
	}
	return out
}

func gatekeeperEdits(string) ([]build.Edit, error) {
	return shut(gatekeeperModule, gatekeeperServed), nil
}
