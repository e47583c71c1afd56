package engine

import "tare/internal/build"

// EditsOf are the edits of a kind for a module's folder.
func EditsOf(k *Kind, module string) ([]build.Edit, error) { return k.edits(module) }
