package decision

import (
	"errors"
	"os"
	"testing"
	"time"

	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/internal/design"
	"tare/internal/probe"
	"tare/rigs/hosttest"
)

// TestRealEngines verifies the engines that must be built, at each position, and reads a JVM's garbage collections. It
// skips an engine that the host lacks, unless TARE_ENGINES names it.
func TestRealEngines(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range []engine.Kind{engine.OPA, engine.OpenFGA, engine.ATT, engine.AuthzForce} {
		t.Run(string(k), func(t *testing.T) {
			env := testEnv(t)
			env.Getenv = os.LookupEnv
			_, err := engine.Find(t.Context(), k, host(env))
			if missing := new(engine.Missing); errors.As(err, &missing) && os.Getenv("TARE_ENGINES") == "" {
				hosttest.Missing(t, missing.Reason, missing.Next)
			}
			spec := embedded(k, Planted{})
			spec.Policies = 5
			tg, j := opened(t, spec, env)
			tg.warmth = rehearsal{workers: 2, calls: 200, within: 20 * time.Second}
			for _, position := range []model.Position{model.First, model.Last, model.Absent} {
				tr := design.Treatment{ID: string(position), Levels: map[string]string{"position": string(position)}}
				if err := tg.Prepare(t.Context(), tr, j); err != nil {
					t.Fatal(err)
				}
				if err := tg.Verify(t.Context(), tr); err != nil {
					t.Error(err)
				}
			}
			tr := design.Treatment{ID: string(model.Last)}
			seen := map[string]bool{}
			for _, p := range tg.Probes(tr) {
				samples, err := p.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range samples {
					seen[s.Metric] = true
				}
			}
			if java := k != engine.OPA && k != engine.OpenFGA; !seen[probe.CPU.Name] || seen[probe.GCCount.Name] != java {
				t.Errorf("samples of %v", seen)
			}
		})
	}
}
