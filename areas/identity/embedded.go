package identity

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"tare/areas/identity/reference"
	"tare/internal/kit"
	"tare/internal/unit"
)

// defaultPreset is the one that reproduces the published report.
const defaultPreset = "blog-2020"

// Embedded chooses a preset of the reference servers and turns single knobs. A knob that is not given keeps the
// preset's value. Every knob can also be a factor of treatments.
type Embedded struct {
	Preset           *string              `yaml:"preset,omitempty" json:"preset,omitempty" jsonschema:"enum=blog-2020,enum=cpu-only,enum=sts-quota-reject,enum=sts-quota-queue,enum=sts-quota-tarpit,enum=healthy" jsonschema_description:"What to start from. blog-2020 behaves like the published GKE report (default)."`
	CPUQuota         *CPU                 `yaml:"cpu_quota,omitempty" json:"cpu_quota,omitempty" jsonschema_description:"CPU limit of the endpoint: 100m is a tenth of a CPU. 0: none."`
	CPUPerRequest    *unit.Duration       `yaml:"cpu_per_request,omitempty" json:"cpu_per_request,omitempty" jsonschema_description:"CPU time of the endpoint per request, its HTTP work included."`
	Procs            *int                 `yaml:"procs,omitempty" json:"procs,omitempty" jsonschema:"minimum=0" jsonschema_description:"GOMAXPROCS of the endpoint. 0: cpu_quota rounded up, or the runtime's choice without a quota."`
	MaxConns         *int                 `yaml:"max_conns,omitempty" json:"max_conns,omitempty" jsonschema:"minimum=0" jsonschema_description:"Connections that the endpoint accepts at a time; others wait in the listen queue. 0: no limit."`
	Backlog          *int                 `yaml:"backlog,omitempty" json:"backlog,omitempty" jsonschema:"minimum=0" jsonschema_description:"Listen backlog, as in listen(2). 0: the kernel's limit, net.core.somaxconn."`
	IdleTimeout      *unit.Duration       `yaml:"idle_timeout,omitempty" json:"idle_timeout,omitempty" jsonschema_description:"When the endpoint closes an idle keep-alive connection. 0s: never."`
	Cache            *bool                `yaml:"cache,omitempty" json:"cache,omitempty" jsonschema_description:"Keep tokens until they expire."`
	Singleflight     *bool                `yaml:"singleflight,omitempty" json:"singleflight,omitempty" jsonschema_description:"Let concurrent requests of one identity share an exchange."`
	RefreshEarly     *unit.Duration       `yaml:"refresh_early,omitempty" json:"refresh_early,omitempty" jsonschema_description:"How long before expiry a cached token is renewed in the background. 0s: the first request after expiry waits."`
	Jitter           *unit.Duration       `yaml:"jitter,omitempty" json:"jitter,omitempty" jsonschema_description:"Random time, from 0 to this, that is added to refresh_early for each token."`
	UpstreamConns    *int                 `yaml:"upstream_conns,omitempty" json:"upstream_conns,omitempty" jsonschema:"minimum=0" jsonschema_description:"Connections from the endpoint to the STS. 0: no limit."`
	UnavailableFirst *unit.Duration       `yaml:"unavailable_first,omitempty" json:"unavailable_first,omitempty" jsonschema_description:"How long after an identity's first request the endpoint answers 503, as in the first seconds of a pod."`
	Drop             *unit.Percent        `yaml:"drop,omitempty" json:"drop,omitempty" jsonschema_description:"Share of requests that are read and never answered."`
	LivenessPeriod   *unit.Duration       `yaml:"liveness_period,omitempty" json:"liveness_period,omitempty" jsonschema_description:"How often /healthz is asked, with a timeout of 1s. 0s: never."`
	LivenessFailures *int                 `yaml:"liveness_failures,omitempty" json:"liveness_failures,omitempty" jsonschema:"minimum=1" jsonschema_description:"Failed liveness probes in a row that restart the endpoint, which loses its cache."`
	Signing          *reference.Algorithm `yaml:"signing,omitempty" json:"signing,omitempty" jsonschema:"enum=RS256,enum=ES256" jsonschema_description:"Algorithm of the service-account JWTs."`
	TTL              *unit.Duration       `yaml:"ttl,omitempty" json:"ttl,omitempty" jsonschema_description:"Life of tokens."`
	UpstreamLatency  *unit.Duration       `yaml:"upstream_latency,omitempty" json:"upstream_latency,omitempty" jsonschema_description:"Time that each of the two hops to STS and IAM takes."`
	QuotaRate        *unit.Rate           `yaml:"quota_rate,omitempty" json:"quota_rate,omitempty" jsonschema_description:"Token exchanges that the STS allows. 0/s: no quota."`
	QuotaBurst       *int                 `yaml:"quota_burst,omitempty" json:"quota_burst,omitempty" jsonschema:"minimum=1" jsonschema_description:"Token exchanges that the STS allows at once."`
	QuotaMode        *reference.Mode      `yaml:"quota_mode,omitempty" json:"quota_mode,omitempty" jsonschema:"enum=reject,enum=queue,enum=tarpit" jsonschema_description:"What becomes of exchanges over the quota: 429, a wait, or no answer."`
}

// CPU is a number of CPUs, written as Kubernetes does: "100m" or "0.1".
type CPU float64

// maxCPUs is more than any machine has.
const maxCPUs = 1e6

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *CPU) UnmarshalText(b []byte) error {
	s, milli := strings.CutSuffix(string(b), "m")
	v, err := strconv.ParseFloat(s, 64)
	if milli {
		v /= 1000
	}
	if err != nil || !(v >= 0 && v < maxCPUs) {
		return fmt.Errorf("%q is not a number of CPUs such as 100m or 0.5", b)
	}
	*c = CPU(v)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (c CPU) MarshalText() ([]byte, error) {
	return []byte(strconv.FormatFloat(float64(c)*1000, 'f', -1, 64) + "m"), nil
}

// resolve returns the knobs: the preset's, then what e sets. A nil Embedded is the default preset.
func (e *Embedded) resolve() (preset string, k reference.Knobs, err error) {
	if e == nil {
		e = &Embedded{}
	}
	preset = defaultPreset
	if e.Preset != nil {
		preset = *e.Preset
	}
	k, ok := reference.Preset(preset)
	if !ok {
		return "", k, fmt.Errorf("preset: %q is not one of %s", preset, strings.Join(reference.Presets(), ", "))
	}
	e.setLevel(&k)
	return preset, k, k.Validate()
}

// turn sets the knobs that e gives. Fields have the same names here and there; a test holds that.
func (e *Embedded) setLevel(k *reference.Knobs) {
	from, to := reflect.ValueOf(e).Elem(), reflect.ValueOf(k).Elem()
	for i := range from.NumField() {
		f := from.Field(i)
		if f.IsNil() || from.Type().Field(i).Name == "Preset" {
			continue
		}
		dst := to.FieldByName(from.Type().Field(i).Name)
		dst.Set(f.Elem().Convert(dst.Type()))
	}
}

// set reads the level of one knob.
func (e *Embedded) set(name, level string) error {
	i := slices.Index(knobNames(), name)
	if i < 0 {
		return fmt.Errorf("unknown knob %q", name)
	}
	return assignField(reflect.ValueOf(e).Elem(), i, level)
}

// knobNames lists the fields of Embedded by their names in the file, in order.
func knobNames() []string { return kit.FieldNames(reflect.TypeFor[Embedded]()) }
