package engine

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"

	"tare/areas/decision/model"
	"tare/internal/files"
)

// Prepare writes the policies of set into dir, which is there, in the engine's own language, and returns what the child
// is told: to listen on a port of loopback that is free. pdpx holds policies of its own kinds, set.N of them, and needs
// no file.
func (l Launch) Prepare(dir string, set model.Set) (Config, error) {
	cfg := Config{Addr: "127.0.0.1:0", N: set.N}
	var written map[string][]byte
	switch l.Kind {
	case Cedar:
		cfg.File = "policies.cedar"
		written = map[string][]byte{cfg.File: set.Cedar()}
	case OPA:
		cfg.File, cfg.Path = "policies.rego", "/v1/data/"+model.RegoPackage+"/"+model.RegoRule
		written = map[string][]byte{cfg.File: set.Rego(model.RegoPackage)}
	case ATT, AuthzForce:
		cfg.File = "policies.xml"
		written = map[string][]byte{cfg.File: set.XACML(), authzForceFile: authzForceConfig(cfg.File, model.XACMLRoot)}
	case OpenFGA:
		store, err := storeOf(set)
		if err != nil {
			return Config{}, err
		}
		cfg.File = storeFile
		written = map[string][]byte{cfg.File: store}
	case PDPX:
		return cfg, nil
	default:
		return Config{}, fmt.Errorf("prepare decision point: unknown kind %q", l.Kind)
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = write(dir, written)
	}
	if err != nil {
		return Config{}, fmt.Errorf("prepare %s: %w", l.Kind, err)
	}
	cfg.File = filepath.Join(dir, cfg.File)
	return cfg, nil
}

// write puts files into a folder of this user's.
func write(dir string, texts map[string][]byte) error {
	f, err := files.Reach(dir)
	for name, text := range texts {
		if err == nil {
			err = f.Write(name, text)
		}
	}
	if f != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// authzForceFile is where its server finds AuthzForce's own configuration, beside the policies.
const authzForceFile = "pdp.xml"

// authzForceConfig returns AuthzForce's own configuration (its schema pdp.xsd, version 8) for a file of policies and
// the identifier of the outermost one.
func authzForceConfig(policies, root string) []byte {
	var id bytes.Buffer
	xml.Escape(&id, []byte(root))
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<pdp xmlns="http://authzforce.github.io/core/xmlns/pdp/8" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" version="8.0.0">
  <policyProvider id="policies" xsi:type="StaticPolicyProvider"><policyLocation>${PARENT_DIR}/%s</policyLocation></policyProvider>
  <rootPolicyRef>%s</rootPolicyRef>
</pdp>
`, policies, id.Bytes())
}
