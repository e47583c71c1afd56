// Command tare weighs security controls: what does a control cost, and where does it break?
package main

import (
	"tare"
	"tare/areas/admission"
	"tare/areas/decision"
	"tare/areas/exec"
	"tare/areas/identity"
	"tare/areas/imagepull"
	"tare/areas/sandbox"
)

func main() {
	tare.Main(
		identity.Area{},
		decision.Area{},
		sandbox.Area{},
		admission.Area{},
		imagepull.Area{},
		exec.Area{},
	)
}
