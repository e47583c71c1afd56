// Command tare weighs security controls: what does a control cost, and where does it break?
package main

import (
	"tare"
	"tare/area"
	"tare/areas/admission"
	"tare/areas/decision"
	"tare/areas/exec"
	"tare/areas/identity"
	"tare/areas/imagepull"
	"tare/areas/sandbox"
)

func main() { tare.Main(areas()...) }

// areas are those of this binary, in the order in which lists have them.
func areas() []area.Area {
	return []area.Area{
		identity.Area{},
		decision.Area{},
		sandbox.Area{},
		admission.Area{},
		imagepull.Area{},
		exec.Area{},
	}
}
