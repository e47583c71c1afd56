package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/openfga/language/pkg/go/transformer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// A store is a model and its relationships.
type store struct {
	Model  json.RawMessage `json:"model"`  // in the API's form; nil: in Files
	Files  []source        `json:"files"`  // in the modelling language
	Schema string          `json:"schema"` // of a model of several modules; "": there is one file
	Tuples []tuple         `json:"tuples"`
}

// A source is a file, or a part of one, in the modelling language.
type source struct {
	File   string `json:"file"`
	Line   int    `json:"line"`   // of the file, from which the text begins; 1: it is all of it
	Column int    `json:"column"` // by which it is indented there
	Text   string `json:"text"`
}

// A tuple is a relationship and its place.
type tuple struct {
	Key  json.RawMessage `json:"key"`
	File string          `json:"file"`
	Line int             `json:"line"`
}

// A problem is what is wrong in a file of the user's.
type problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Says   string `json:"says"`
}

// identifiers are those that OpenFGA gave to what was written.
type identifiers struct{ store, model string }

// most is how many problems are told.
const most = 10

// batch is how many relationships one write may hold, by OpenFGA's default.
const batch = 100

// compile reads the model.
func (s *store) compile() (*openfgav1.AuthorizationModel, []problem) {
	m := &openfgav1.AuthorizationModel{}
	if s.Model != nil {
		if err := protojson.Unmarshal(s.Model, m); err != nil {
			return nil, []problem{{Says: err.Error()}}
		}
		return m, nil
	}
	var wrong []problem
	for _, f := range s.Files {
		var err error
		if s.Schema == "" {
			m, err = transformer.TransformDSLToProto(f.Text)
		} else {
			_, _, err = transformer.TransformModularDSLToProto(f.Text)
		}
		wrong = append(wrong, f.problems(err)...)
	}
	if s.Schema == "" || len(wrong) > 0 {
		return m, wrong[:min(len(wrong), most)]
	}
	var modules []transformer.ModuleFile
	for _, f := range s.Files {
		modules = append(modules, transformer.ModuleFile{Name: f.File, Contents: f.Text})
	}
	m, err := transformer.TransformModuleFilesToModel(modules, s.Schema)
	for _, e := range each(err) {
		p := problem{Says: e.Error()}
		if one := new(transformer.ModuleTransformationSingleError); errors.As(e, &one) {
			p = problem{File: one.File, Line: one.Line.Start + 1, Column: one.Column.Start + 1, Says: one.Msg}
		}
		wrong = append(wrong, p)
	}
	return m, wrong[:min(len(wrong), most)]
}

// each is the errors that one stands for.
func each(err error) []error {
	several, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case ok:
		return several.Unwrap()
	}
	return []error{err}
}

// says is how the language's errors begin, whose lines and columns count from 0.
var says = regexp.MustCompile(`^syntax error at line=(\d+), column=(\d+): `)

func (f source) problems(err error) (out []problem) {
	for _, e := range each(err) {
		p := problem{File: f.File, Line: f.Line, Says: e.Error()}
		if m := says.FindStringSubmatch(p.Says); m != nil {
			line, _ := strconv.Atoi(m[1])
			column, _ := strconv.Atoi(m[2])
			p.Line, p.Column, p.Says = f.Line+line, f.Column+column+1, strings.TrimPrefix(p.Says, m[0])
		}
		out = append(out, p)
	}
	return out
}

// fill waits for the server and writes the store into it.
func (s *server) fill(ctx context.Context, of *store) (wrong []problem, ids identifiers, err error) {
	model, wrong := of.compile()
	if len(wrong) > 0 {
		return wrong, ids, nil
	}
	soon := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.1, MaxDelay: 50 * time.Millisecond}
	addr, err := s.listens(ctx, grpcHost)
	if err != nil {
		return nil, ids, err
	}
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon}))
	if err != nil {
		return nil, ids, err
	}
	defer conn.Close() //nolint:errcheck // it was only asked
	client := openfgav1.NewOpenFGAServiceClient(conn)
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.token)
	if ids.store, err = s.create(ctx, client); err != nil {
		return nil, ids, err
	}
	written, err := client.WriteAuthorizationModel(ctx, &openfgav1.WriteAuthorizationModelRequest{
		StoreId: ids.store, SchemaVersion: model.GetSchemaVersion(), TypeDefinitions: model.GetTypeDefinitions(),
		Conditions: model.GetConditions(),
	})
	if err != nil {
		return []problem{of.modelProblem(err)}, ids, nil
	}
	ids.model = written.GetAuthorizationModelId()
	wrong, err = of.write(ctx, client, ids)
	return wrong, ids, err
}

// create makes the store, as soon as the server answers.
func (s *server) create(ctx context.Context, client openfgav1.OpenFGAServiceClient) (string, error) {
	for {
		made, err := client.CreateStore(ctx, &openfgav1.CreateStoreRequest{Name: "tare"})
		if status.Code(err) != codes.Unavailable {
			return made.GetId(), err
		}
		if err := s.pause(ctx); err != nil {
			return "", err
		}
	}
}

// relation is how OpenFGA names one of a type in its errors.
var relation = regexp.MustCompile(`relation '?([A-Za-z0-9_-]+)'? in object type '?([A-Za-z0-9_-]+)'?|'([A-Za-z0-9_-]+)#([A-Za-z0-9_-]+)'`)

// modelProblem is why the server refuses the model, with the place of the relation that it names, if it is found.
func (s *store) modelProblem(err error) problem {
	p := problem{Says: status.Convert(err).Message()}
	if len(s.Files) > 0 {
		p.File, p.Line = s.Files[0].File, s.Files[0].Line
	}
	m := relation.FindStringSubmatch(p.Says)
	if m == nil {
		return p
	}
	of, name := m[2], m[1]
	if name == "" {
		of, name = m[3], m[4]
	}
	for _, asUsed := range []bool{false, true} {
		for _, f := range s.Files {
			if line, column := f.find(of, name, asUsed); line > 0 {
				return problem{File: f.File, Line: line, Column: column, Says: p.Says}
			}
		}
	}
	return p
}

var word = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// find returns where a relation of a type is defined or, if asUsed, where that type's definitions first use it. The line
// is 0 if they do not.
func (f source) find(of, name string, asUsed bool) (line, column int) {
	in := ""
	for i, text := range strings.Split(f.Text, "\n") {
		at := word.FindAllStringIndex(text, -1)
		is := func(k int, w string) bool { return k < len(at) && text[at[k][0]:at[k][1]] == w }
		switch {
		case len(at) > 1 && (is(0, "type") || is(0, "extend")):
			last := at[len(at)-1]
			in = text[last[0]:last[1]]
		case in != of || !is(0, "define"):
		case !asUsed && is(1, name):
			return f.Line + i, f.Column + at[1][0] + 1
		case asUsed:
			for k := 2; k < len(at); k++ {
				if is(k, name) {
					return f.Line + i, f.Column + at[k][0] + 1
				}
			}
		}
	}
	return 0, 0
}

// write writes the relationships. Of those that the server refuses it names the first.
func (s *store) write(ctx context.Context, client openfgav1.OpenFGAServiceClient, ids identifiers) ([]problem, error) {
	keys := make([]*openfgav1.TupleKey, len(s.Tuples))
	for i, t := range s.Tuples {
		keys[i] = &openfgav1.TupleKey{}
		if err := protojson.Unmarshal(t.Key, keys[i]); err != nil {
			return []problem{{File: t.File, Line: t.Line, Says: err.Error()}}, nil
		}
	}
	put := func(some []*openfgav1.TupleKey) error {
		_, err := client.Write(ctx, &openfgav1.WriteRequest{
			StoreId: ids.store, AuthorizationModelId: ids.model, Writes: &openfgav1.WriteRequestWrites{TupleKeys: some},
		})
		return err
	}
	for at := 0; at < len(keys); at += batch {
		end := min(len(keys), at+batch)
		err := put(keys[at:end])
		if err == nil {
			continue
		}
		for i := at; i < end; i++ {
			if one := put(keys[i : i+1]); one != nil {
				return []problem{{File: s.Tuples[i].File, Line: s.Tuples[i].Line, Says: status.Convert(one).Message()}}, nil
			}
		}
		return nil, fmt.Errorf("write relationships %d to %d: %w", at+1, end, err)
	}
	return nil, nil
}
