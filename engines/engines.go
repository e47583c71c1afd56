// Package engines embeds the sources of the programs that are not part of the tare binary: decision points and control
// planes. Package engine of the decision area and package plane build them once, on demand.
package engines

import "embed"

// Sources holds the files that engines and control planes are built from, by path: xacml/src/… and xacml/*.sha256 for
// the Java engines, and for the Go modules opa, ../plane and ../plane/psp the folders opasource, planesource and
// pspsource. These folders are copies, because a module cannot embed the files of another.
//
//go:embed xacml/src xacml/*.sha256 opasource/*.txt planesource pspsource/*.txt
var Sources embed.FS
