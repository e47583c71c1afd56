package cli

import (
	"tare/area"
	"tare/areas/admission"
	"tare/areas/decision"
	"tare/areas/exec"
	"tare/areas/identity"
	"tare/areas/imagepull"
	"tare/areas/sandbox"
	"tare/internal/config"
)

// every are all areas, as cmd/tare has them.
var every = config.List([]area.Area{
	identity.Area{}, decision.Area{}, sandbox.Area{}, admission.Area{}, imagepull.Area{}, exec.Area{},
})
