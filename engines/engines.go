// Package engines holds the sources of the programs that are no part of the tare binary: decision points and control planes. They are built where they are
// wanted, once, by package engine of the decision area and by package plane.
package engines

import "embed"

// Sources are the files to build from, by path: xacml/src/… and xacml/*.sha256; and opasource/*.txt, planesource/…/*.txt and pspsource/*.txt.
// The latter are the modules in opa/, ../plane and ../plane/psp under names that let them be embedded: a module's files cannot be embedded by another's.
//
//go:embed xacml/src xacml/*.sha256 opasource/*.txt planesource pspsource/*.txt
var Sources embed.FS
