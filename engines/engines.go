// Package engines holds the sources of the programs that are no part of the tare binary: decision points and control planes. They are built where they are
// wanted, once, by package engine of the decision area and by package plane.
package engines

import "embed"

// Sources holds the files that engines and control planes are built from, by path: xacml/src/… and xacml/*.sha256 for the Java
// engines; opasource/*.txt, planesource/…/*.txt and pspsource/*.txt for the modules in opa/, ../plane and ../plane/psp. Those are
// copies: a module cannot embed the files of another.
//
//go:embed xacml/src xacml/*.sha256 opasource/*.txt planesource pspsource/*.txt
var Sources embed.FS
