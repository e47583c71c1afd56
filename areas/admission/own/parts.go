package own

import (
	"maps"
	"slices"
	"strings"
)

// A part is a part of a policy of Kyverno's in YAML: the fields of which it is known that they have Kyverno ask nobody
// but the API server, as Kyverno spells them, and what they hold. A field without parts holds values, in which Kyverno
// looks for no further fields.
type part map[string]part

// partOf makes a part of the names of fields that hold values, and of others.
func partOf(values string, parts part) part {
	out := maps.Clone(parts)
	if out == nil {
		out = part{}
	}
	for name := range strings.FieldsSeq(values) {
		out[name] = nil
	}
	return out
}

// quiet are the fields of a policy's spec, of Kyverno 1.13 to 1.19.
var quiet = quietSpec()

func quietSpec() part {
	context := partOf("name configMap variable globalReference", part{
		"apiCall": partOf("urlPath method data default jmesPath", nil),
	})
	made := "apiVersion kind namespace name uid data clone cloneList"
	each := partOf("list order elementScope preconditions pattern anyPattern deny patchStrategicMerge "+
		"patchesJson6902 "+made, part{"context": context})
	each["foreach"] = each
	return partOf("admission applyRules background emitWarning failurePolicy generateExisting "+
		"generateExistingOnPolicyUpdate mutateExistingOnPolicyUpdate schemaValidation useServerSideApply "+
		"validationFailureAction validationFailureActionOverrides webhookConfiguration webhookTimeoutSeconds", part{
		"rules": partOf("name match exclude preconditions celPreconditions imageExtractors reportProperties "+
			"skipBackgroundRequests", part{
			"context": context,
			"validate": partOf("failureAction failureActionOverrides allowExistingViolations message pattern anyPattern deny "+
				"podSecurity cel assert", part{"foreach": each}),
			"mutate": partOf("mutateExistingOnPolicyUpdate patchStrategicMerge patchesJson6902", part{
				"foreach": each,
				"targets": partOf("apiVersion kind namespace name uid selector preconditions", part{"context": context}),
			}),
			"generate": partOf("generateExisting synchronize orphanDownstreamOnPolicyDelete "+made, part{"foreach": each}),
		}),
	})
}

// each calls do for each field of what a part holds, with its value, in the order of their names. known: the part has
// it.
func (p part) each(of any, do func(name string, value any, known bool)) {
	switch v := of.(type) {
	case tree:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts, known := p[name]
			do(name, v[name], known)
			if parts != nil {
				parts.each(v[name], do)
			}
		}
	case []any:
		for _, in := range v {
			p.each(in, do)
		}
	}
}
