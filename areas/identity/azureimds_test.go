package identity

import (
	"strings"
	"testing"
	"time"

	"tare/areas/identity/fixture"
	"tare/internal/load"
)

func startAzure(t *testing.T) *fixture.AzureIMDS {
	t.Helper()
	a, err := fixture.StartAzureIMDS(fixture.Config{})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, a)
	return a
}

// TestAzureIMDS reads the numbers as the service and as emulators write them, from the cache and around it.
func TestAzureIMDS(t *testing.T) {
	for _, numeric := range []bool{false, true} {
		a := startAzure(t)
		a.NumericExpiry = numeric
		everyOK(t, callOnce(t, &Spec{Adapter: "azure-imds", URL: a.URL}, 5))
		if n := a.Mints(); n != 1 {
			t.Errorf("token: %d tokens were signed, want 1", n)
		}
		everyOK(t, callOnce(t, &Spec{Adapter: "azure-imds", URL: a.URL, Operation: opFresh}, 5))
		if n := a.Mints(); n < 6 {
			t.Errorf("fresh: %d tokens were signed, want one for each call", n)
		}
	}
}

// TestAzureIdentities: each caller gets the token of its own identity, for its own resource.
func TestAzureIdentities(t *testing.T) {
	a := startAzure(t)
	everyOK(t, callOnce(t, &Spec{
		Adapter: "azure-imds", URL: a.URL, Azure: &Azure{Resource: "https://vault.azure.net"},
		Callers: []Caller{{Name: "one"}, {Name: "two", Audience: "https://storage.azure.com/?a=b&c"}},
	}, 4))
	if n := a.Mints(); n != 2 {
		t.Errorf("%d tokens were signed, want 2", n)
	}
}

// TestAzureTransientErrors: errors that Azure documents as transient are retried before the load, and counted as
// transient during it.
func TestAzureTransientErrors(t *testing.T) {
	for _, c := range []struct {
		faults fixture.Faults
		want   load.Outcome
		cause  verdict
	}{
		{fixture.Faults{Every: 1, Status: 404}, load.Failed, temporarilyUnavailable},
		{fixture.Faults{Every: 1, Status: 410}, load.Failed, temporarilyUnavailable},
		{fixture.Faults{Every: 1, Status: 500}, load.Failed, noCause},
		{fixture.Faults{Every: 1, Status: 503}, load.Refused, temporarilyUnavailable},
		{fixture.Faults{Refuse: true}, load.Refused, slowDown},
		{fixture.Faults{Every: 1, Status: 403}, load.Wrong, credentialRefused},
	} {
		a := startAzure(t)
		tg, _ := prepared(t, &Spec{Adapter: "azure-imds", URL: a.URL}, standard)
		a.Turn(c.faults)
		ops, err := tg.Operations(standard)
		if err != nil {
			t.Fatal(err)
		}
		o, err := tg.arm(standard.ID).call(t.Context(), ops[0].Wire, 0, 10*time.Second)
		if o != c.want || err == nil || (c.cause != noCause && !strings.Contains(err.Error(), causes()[c.cause])) {
			t.Errorf("%+v: %v, %v; want %v", c.faults, o, err, c.want)
		}
	}
	a := startAzure(t)
	a.Turn(fixture.Faults{Every: 1, Status: 410})
	go func() { // the update ends
		for a.Calls() < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		a.Turn(fixture.Faults{})
	}()
	prepared(t, &Spec{Adapter: "azure-imds", URL: a.URL}, standard)
	if n := a.Calls(); n < 3 {
		t.Errorf("%d calls: the transient error was not retried", n)
	}
}

func TestAzureOptions(t *testing.T) {
	for _, c := range []struct {
		o    Azure
		want string
	}{
		{Azure{}, ""},
		{Azure{Resource: "https://graph.microsoft.com/", ClientID: "6c3d0a4e-0000-4000-8000-00000000f1c7"}, ""},
		{Azure{Resource: "a b"}, "azure.resource"},
		{Azure{ClientID: "a\nb"}, "azure.client_id"},
	} {
		err := azureIMDS().validate(&Spec{Azure: &c.o}, opToken)
		if (err == nil) != (c.want == "") || (err != nil && !strings.HasPrefix(err.Error(), c.want+": ")) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	s := fakeSession(opFresh, 1)
	s.spec = &Spec{Azure: &Azure{Resource: "https://a/?b=c&d", ClientID: "x&y"}}
	const want = "GET /metadata/identity/oauth2/token?api-version=2018-02-01" +
		"&resource=https%3A%2F%2Fa%2F%3Fb%3Dc%26d&client_id=x%26y&bypass_cache=true HTTP/1.1\r\n"
	if got := string(azureIMDS().wire(s).Render(nil, 0)); !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "\r\nMetadata: true\r\n") {
		t.Errorf("request %q", got)
	}
}
