# tare: what does a security control cost, and where does it break?
GO      ?= go
# Of a tarball, which is no repository, tare knows these three from internal/cli/archive.go.
VERSION ?= $(if $(wildcard .git),$(shell git describe --tags --always --dirty))
COMMIT  ?= $(if $(wildcard .git),$(shell git rev-parse HEAD))
DATE    ?= $(if $(wildcard .git),$(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd))
LDFLAGS := -X tare/internal/cli.version=$(VERSION) -X tare/internal/cli.commit=$(COMMIT) -X tare/internal/cli.date=$(DATE)
# Without this folder's paths another checkout finds what is compiled in the cache; kustomize's plug-ins would add a third.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath -tags=kustomize_disable_go_plugin_support
MAKER   := $(GO) run ./rigs/cmd/tare-make
DIST    := $(GO) run ./rigs/cmd/tare-dist -version '$(VERSION)' -commit '$(COMMIT)' -date '$(DATE)' -url '$(RELEASES)' -sign '$(abspath $(SIGN))'
CALIBRATE := $(GO) run ./rigs/cmd/tare-calibrate
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*## .*/\1/p' Makefile)

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' Makefile

demo: ## find where an embedded token endpoint breaks, and how (about two minutes)
	$(MAKER) build -areas identity -ldflags '$(LDFLAGS)' -o bin/demo/tare
	bin/demo/tare run areas/identity/examples/gke-2020.yaml

build: ## bin/tare; with AREAS=identity,decision of these areas only
	$(MAKER) build -areas '$(AREAS)' -ldflags '$(LDFLAGS)' -o bin/tare

engines: ## the decision points that this host can build, into the user's cache; and whether they decide
	$(GO) test -count=1 -v -timeout 25m -run '^TestEnginesDecide' ./areas/decision/engine

plane: ## Kubernetes 1.36 and 1.24, Kyverno and Gatekeeper, into the user's cache: half an hour on two cores, once
	TARE_TEST_PLANE_BUILD=1 $(GO) test -count=1 -v -p 1 -timeout 4h -run '^TestBinariesAreBuilt$$' ./areas/plane \
	  ./areas/admission/engine

modules: ## the Go modules whose sources tare embeds, as links in bin/modules, to edit and test them
	$(MAKER) modules

test: bin/gotestsum ## everything that this machine can run: go test ./... (make lint vets), and a table of what it could not
	@bin/gotestsum --format standard-quiet --hide-summary=skipped --jsonfile bin/test.json -- -p $$(($$(getconf _NPROCESSORS_ONLN)+1)) -timeout 25m -vet=off -ldflags=-w ./...; \
	failed=$$?; $(MAKER) untried bin/test.json && exit $$failed

# Programs with the detector sleep for a second before they exit; -w leaves out what debuggers read: half of the linking.
race: bin/gotestsum ## the packages with goroutines, under the race detector, with -short
	GORACE=atexit_sleep_ms=50 bin/gotestsum --format standard-quiet --hide-summary=skipped -- -race -short -vet=off -ldflags=-w \
	  $$($(MAKER) concurrent)

bin/gotestsum bin/golangci-lint: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/ gotest.tools/gotestsum github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: bin/golangci-lint ## golangci-lint at the version that tools/go.mod pins
	GOGC=400 GOMEMLIMIT=4GiB bin/golangci-lint run ./...

quick: ## for the loop of an edit: vet everything, and the tests that take no second
	$(GO) vet ./...
	$(GO) test -short -vet=off -ldflags=-w ./...

check: lint race test ## what a change must pass before it is sent

# What only maintainers run.
bench: ## the generator against wrk and net/http, and its lateness
	$(GO) run ./rigs/cmd/tare-bench
simulate: ## the search, the signatures and the statistics against simulated truth (about half an hour)
	@for a in '' '-worlds 10000 -seed 1' -stat '-turns -n 40 -seed 1'; do \
	  $(GO) run ./rigs/cmd/tare-simulate $$a || exit 1; done
calibrate: build ## tare against servers of known capacity (twenty minutes), planted costs (an hour) and planted breaches (two)
	$(CALIBRATE) -servers -n 1 -parallel 2 -out bin/servers.json areas/identity/testdata/capacity.yaml.tmpl
	$(CALIBRATE) -n 40 -busy 2 areas/sandbox/examples/aa.yaml
	$(CALIBRATE) -n 20 -busy 2 areas/sandbox/examples/planted.yaml
	TARE_GUARD_RUNS=20 $(GO) test ./rigs/controls -v -timeout 3h
gallery: build ## write the pages of docs/gallery, from runs of half an hour together
	$(GO) build -o bin/hash ./areas/exec/examples/hash
	$(MAKER) gallery
fuzz: ## every fuzz target for 30 s each
	$(MAKER) fuzz
schema: ## regenerate the JSON Schemas
	$(GO) test ./cmd/tare ./internal/report -run Schema -update
dist: ## release files for linux/amd64 and linux/arm64 in bin/dist (docs/howto/install.md)
	$(DIST)
dist-check: dist ## build the release of this commit again in another folder, without the build cache, and compare
	$(DIST) -check

clean: ## remove what was built
	rm -rf bin
