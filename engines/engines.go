// Package engines holds the sources of the decision points that are no part of the tare binary: they are built where they are wanted, once, by
// package engine of the decision area.
package engines

import "embed"

// Sources are the files to build from, by path: xacml/pom.xml, xacml/src/…, xacml/*.sha256, and opasource/*.txt. The latter are the module in opa/
// under names that let them be embedded: a module's files cannot be embedded by another's.
//
//go:embed xacml/pom.xml xacml/src xacml/*.sha256 opasource/*.txt
var Sources embed.FS
