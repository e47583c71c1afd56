package own

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	compiler "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"tare/areas/bundle"
)

// base is what expressions may use in the newest Kubernetes that tare starts. kube-apiserver compiles what it stores
// by the same.
var base = sync.OnceValue(func() *environment.EnvSet { return environment.MustBaseEnvSet(version.MajorMinor(1, 36)) })

// An expression is one of a policy's.
type expression struct {
	name string // of a variable
	text string
	path []string // in the object
	// types are those that it may have.
	types []*cel.Type
	// asks: it may ask what the user may do.
	asks bool
	// patches: it may make objects that are merged into, or lists of changes.
	patches bool
}

// GetExpression implements what the compiler takes.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements what the compiler takes.
func (e expression) ReturnTypes() []*cel.Type { return e.types }

// GetName implements what the compiler takes.
func (e expression) GetName() string { return e.name }

// The words that kube-apiserver takes.
var (
	operations = []admission.OperationType{
		admission.OperationAll, admission.Create, admission.Update, admission.Delete, admission.Connect,
	}
	actions = []admission.ValidationAction{admission.Deny, admission.Warn, admission.Audit}
)

// checkWords reports a word of a list at a path that kube-apiserver would refuse.
func checkWords[T ~string](d document, words, want []T, path ...string) error {
	for i, w := range words {
		if !slices.Contains(want, w) {
			at := d.within(1, 0, append(path, strconv.Itoa(i))...)
			return errors.New(at.Show(d.all, fmt.Sprintf("%q is not one of %v", w, want)))
		}
	}
	return nil
}

// checkOperations reports an operation that kube-apiserver would refuse.
func checkOperations(d document, m *admission.MatchResources, path ...string) error {
	if m == nil {
		return nil
	}
	for list, rules := range map[string][]admission.NamedRuleWithOperations{
		"resourceRules": m.ResourceRules, "excludeResourceRules": m.ExcludeResourceRules,
	} {
		for i, r := range rules {
			at := slices.Concat(path, []string{list, strconv.Itoa(i), "operations"})
			if err := checkWords(d, r.Operations, operations, at...); err != nil {
				return err
			}
		}
	}
	return nil
}

// Compile reports what kube-apiserver would refuse in the policies' expressions, and in the words that it knows, with
// the place in the user's file.
func (s *Set) Compile() error {
	var errs []error
	for i := range s.Policies {
		err := s.Policies[i].compile(bundle.DefaultLimit())
		if errors.Is(err, bundle.ErrTooMuch) {
			return err // it goes on meanwhile
		}
		errs = append(errs, err)
	}
	for i := range s.Bindings {
		b := &s.Bindings[i]
		errs = append(errs, checkWords(b.at, b.Spec.ValidationActions, actions, "spec", "validationActions"),
			checkOperations(b.at, b.Spec.MatchResources, "spec", "matchResources"))
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	const most = 10
	if n := len(errs); n > most {
		errs = append(errs[:most], fmt.Errorf("and in %d more policies", n-most))
	}
	return errors.Join(errs...)
}

// compile compiles a policy's expressions in their order: later ones see the variables before them. A type can be twice
// as long as the one that it is made of, again and again.
func (p *Policy) compile(l bundle.Limit) error {
	if p.engine != nil {
		return nil // the engine's language has functions of its own
	}
	err := l.Check("whether its expressions are valid", p.invalid)
	if errors.Is(err, bundle.ErrTooMuch) {
		return p.at.errorf("%w", err)
	}
	return err
}

// invalid is why a policy's expressions are not valid.
func (p *Policy) invalid(ctx context.Context) error {
	c, err := compiler.NewCompositedCompiler(base())
	if err != nil {
		return p.at.errorf("%w", err)
	}
	errs := []error{checkOperations(p.at, p.Spec.MatchConstraints, "spec", "matchConstraints")}
	for _, v := range p.variables() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		errs = append(errs, p.refusal(v, c.CompileAndStoreVariable(v, p.options(v), environment.StoredExpressions)))
	}
	for _, e := range p.expressions() {
		errs = append(errs, p.refusal(e, c.CompileCELExpression(e, p.options(e), environment.StoredExpressions)))
	}
	return errors.Join(errs...)
}

func (p *Policy) options(e expression) compiler.OptionalVariableDeclarations {
	return compiler.OptionalVariableDeclarations{
		HasParams: p.Spec.ParamKind != nil, HasAuthorizer: e.asks, HasPatchTypes: e.patches,
	}
}

func (p *Policy) variables() (out []expression) {
	for i, v := range p.Spec.Variables {
		out = append(out, expression{
			name: v.Name, text: v.Expression, path: at("variables", i, "expression"),
			types: []*cel.Type{cel.AnyType, cel.DynType}, asks: true,
		})
	}
	return out
}

func (p *Policy) expressions() (out []expression) {
	boolean, text := []*cel.Type{cel.BoolType}, []*cel.Type{cel.StringType}
	for i, m := range p.Spec.MatchConditions {
		out = append(out, expression{m.Name, m.Expression, at("matchConditions", i, "expression"), boolean, true, false})
	}
	for i, v := range p.Spec.Validations {
		out = append(out, expression{"", v.Expression, at("validations", i, "expression"), boolean, true, false})
		if v.MessageExpression != "" {
			message := at("validations", i, "messageExpression")
			out = append(out, expression{"", v.MessageExpression, message, text, false, false})
		}
	}
	for i, a := range p.Spec.AuditAnnotations {
		out = append(out, expression{
			a.Key, a.ValueExpression, at("auditAnnotations", i, "valueExpression"),
			[]*cel.Type{cel.StringType, cel.NullType},
			true, false,
		})
	}
	return append(out, p.mutations()...)
}

// mutations are the expressions that say what a MutatingAdmissionPolicy changes.
func (p *Policy) mutations() (out []expression) {
	if p.mutating == nil {
		return nil
	}
	for i, m := range p.mutating.Spec.Mutations {
		path := []string{"spec", "mutations", strconv.Itoa(i)}
		if a := m.ApplyConfiguration; a != nil {
			out = append(out, expression{
				"", a.Expression, append(path, "applyConfiguration", "expression"),
				[]*cel.Type{cel.ObjectType("Object")},
				true, true,
			})
		}
		if j := m.JSONPatch; j != nil {
			out = append(out, expression{
				"", j.Expression, append(path, "jsonPatch", "expression"),
				[]*cel.Type{cel.ListType(cel.ObjectType("JSONPatch"))},
				true, true,
			})
		}
	}
	return out
}

func at(list string, i int, field string) []string {
	return []string{"spec", list, strconv.Itoa(i), field}
}

// celAt finds the places in an error of the compiler.
var celAt = regexp.MustCompile(`ERROR: <input>:(\d+):(\d+): ([^\n]*)`)

// refusal is an error if an expression was not compiled.
func (p *Policy) refusal(e expression, r compiler.CompilationResult) error {
	if r.Error == nil {
		return nil
	}
	m := celAt.FindStringSubmatch(r.Error.Detail)
	if m == nil {
		return errors.New(p.at.within(1, 0, e.path...).Show(p.at.all, r.Error.Detail))
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	column-- // from 1
	says := strings.TrimSuffix(m[3], " (in container '')")
	return errors.New(p.at.within(line, column, e.path...).Show(p.at.all, says))
}
