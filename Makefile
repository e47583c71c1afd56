# tare: what does a security control cost, and where does it break?
GO      ?= go
# Of a tarball, which is no repository, tare knows these three from internal/cli/archive.go.
VERSION ?= $(if $(wildcard .git),$(shell git describe --tags --always --dirty))
COMMIT  ?= $(if $(wildcard .git),$(shell git rev-parse HEAD))
DATE    ?= $(if $(wildcard .git),$(shell TZ=UTC0 git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd))
LDFLAGS := -X tare/internal/cli.version=$(VERSION) -X tare/internal/cli.commit=$(COMMIT) -X tare/internal/cli.date=$(DATE)
# Without the paths of this folder in what is compiled, another checkout of the same sources finds it in the cache.
export GOFLAGS := $(shell $(GO) env GOFLAGS) -trimpath
LINT    := bin/golangci-lint
GOTESTSUM := bin/gotestsum
# Packages that measure nothing and hold nothing to a time: CALM, which have goroutines, and PURE. Those that take
# minutes come first, so that none is left at the end to be tested alone; those that wait stand between those that
# compute. $(wildcard) leaves out the packages of an area whose folder has been removed.
CALM    := $(wildcard ./areas/admission ./areas/plane ./areas/admission/cluster \
           ./areas/admission/mechanism ./areas/decision/engine ./areas/admission/startup \
           ./areas/decision ./areas/admission/node ./internal/driver ./area ./internal/kit \
           ./areas/admission/webhook ./areas/decision/protocol ./areas/decision/reference \
           ./areas/exec ./areas/identity/reference ./internal/kit/oneshot ./internal/build \
           ./internal/importer ./internal/ratelimit ./internal/record ./internal/term)
LONG    := $(wildcard ./rigs/simulation ./areas/admission ./internal/analyze ./areas/plane ./internal/report \
           ./areas/admission/cluster ./rigs/montecarlo) ./rigs/cmd/...
PURE    := $(LONG) $(filter-out $(LONG),$(CALM)) ./schema/... ./internal/arch \
           $(wildcard ./areas/admission/apimetrics ./areas/decision/model) ./internal/budget \
           ./internal/capacity ./internal/chart ./internal/cli ./internal/clock ./internal/config ./internal/design \
           ./internal/glossary ./internal/hist ./internal/jsonscan ./internal/metric ./internal/question \
           ./internal/report/... ./internal/run ./internal/signature ./internal/spelling ./internal/stat/... \
           ./internal/unit ./rigs/areatest $(wildcard ./areas/identity/fixture) ./rigs/memtest
# Of cmd/tare the tests that TIMED names run real experiments or look at all that is on the host: they have it to
# themselves. The others run with PURE. internal/arch sees to it that each name is that of one test of this package.
MIXED   := ./cmd/tare
TIMED   := TestDiskFullDuringRun|TestDocsShowRealOutput|TestInterruptedRun|TestInterruptedRunThatCannotUndo|$\
           TestKilledRuns|TestRunningRecordIsLocked|TestPlaneScript|TestScripts|TestSearches
# Of areas/sandbox the tests that boot lab VMs keep a processor busy for minutes: nothing else runs meanwhile.
LABS    := ^(TestLab|TestLabIsUndoneAfterKill)$$|InLab$$
# Packages that measure or hold something to a time, and leave the processors idle for most of theirs: three at once.
# The longest come first.
WAITING := $(wildcard ./rigs/servers ./rigs/controls ./internal/load ./areas/identity ./internal/run/drive \
           ./rigs/hostile ./areas/sandbox ./areas/sandbox/workload ./areas/imagepull ./internal/probe \
           ./internal/proc ./internal/doctor ./rigs/bench)
# What make race tests besides WAITING.
BESIDE  := $(CALM) $(wildcard ./areas/admission/apimetrics ./areas/decision/model) \
           $(if $(wildcard areas/sandbox),./areas/sandbox/vm/...) ./rigs/areatest $(wildcard ./areas/identity/fixture) \
           ./internal/kit/remote

# What make quick tests: packages that compute, of which most take a second and none ten.
QUICK   := $(filter-out $(CALM) ./internal/analyze ./rigs/montecarlo ./rigs/simulation ./rigs/cmd/...,$(PURE)) \
           ./area ./internal/kit ./internal/importer ./internal/ratelimit ./internal/record ./internal/term

# A stalled host can fail a test that holds a time; a fault fails again. So up to four failed tests are asked once more,
# when all others have run, and are named as asked again. Not after a data race, a panic, a time-out or a package that
# did not compile (ADR 16).
AGAIN   := --rerun-fails=1 --rerun-fails-max-failures=4 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race
TESTS   := $(GOTESTSUM) --format standard-quiet $(AGAIN)

.PHONY: help demo build engines plane modules test slowest race lint quick check bench simulate calibrate gallery fuzz schema \
        dist dist-check clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' Makefile

# Builds the file $1 with the areas $2 alone, or with all. Go takes cmd/tare/main.go without the lines of the others, so
# that nothing of them is compiled.
ALL     := $(shell sed -n 's|^\t"tare/areas/\([a-z0-9]*\)"$$|\1|p' cmd/tare/main.go)
define compile
$(foreach a,$(filter-out $(ALL),$2),$(error AREAS has "$a", which is no area; the areas are: $(ALL)))
$(if $(filter-out $(words $2),$(words $(sort $2))),$(error AREAS has an area twice: $2; the areas are: $(ALL)))
@mkdir -p $(dir $1)
@sed $(if $2,$(foreach a,$(filter-out $2,$(ALL)),-e '\|^\t"tare/areas/$a"$$|d' -e '/^\t\t$a\.Area{},$$/d')) -e '' \
  cmd/tare/main.go >$1.go.txt
@printf '{"Replace": {"%s": "%s"}}\n' '$(CURDIR)/cmd/tare/main.go' '$(CURDIR)/$1.go.txt' >$1.json
$(GO) build -overlay $1.json -ldflags '$(LDFLAGS)' -o $1 ./cmd/tare
endef

demo: ## find where an embedded token endpoint breaks, and how (about two minutes)
	$(call compile,bin/demo/tare,identity)
	bin/demo/tare run areas/identity/examples/gke-2020.yaml

AREAS   ?=
comma   := ,
build: ## bin/tare; with AREAS=identity,decision of these areas only
	$(call compile,bin/tare,$(subst $(comma), ,$(AREAS)))

engines: ## the decision points that this host can build, into the user's cache; and whether they decide
	$(GO) test -count=1 -v -timeout 25m -run '^TestEnginesDecide' ./areas/decision/engine

plane: ## the control planes of Kubernetes 1.36 and 1.24, into the user's cache: ten minutes on two cores, once
	TARE_TEST_PLANE_BUILD=1 $(GO) test -count=1 -v -timeout 4h -run '^TestBinariesAreBuilt$$' ./areas/plane

# Links, so that what is edited there is edited where it belongs.
modules: ## the Go modules whose sources tare embeds, in bin/modules, to edit and test them
	@rm -rf bin/modules
	@find areas -name go.mod.txt | while read -r f; do from=$${f%/go.mod.txt}; to=bin/modules/$${from##*/_}; echo $$to; \
	  mkdir -p $$to && cp -rs "$$PWD/$$from/." $$to && mv $$to/go.mod.txt $$to/go.mod && mv $$to/go.sum.txt $$to/go.sum && \
	  if [ -d $$from/../shared ]; then cp -rs "$$PWD/$$from/../shared/." $$to; fi || exit 1; done

# Compiled first, so that no test is timed while others are compiled.
COMPILE := $(GO) list -export -test -deps

test: $(GOTESTSUM) ## everything that this machine can run
	@$(COMPILE) ./... >/dev/null 2>&1 || true # what does not compile is a finding of the tests
	@failed=; rm -f bin/took-*.json; \
	$(TESTS) --jsonfile-timing-events=bin/took-beside.json --packages='$(MIXED) $(PURE)' -- \
	  -p 4 -vet=off -timeout 25m -skip '^($(TIMED))$$' || failed=1; \
	$(TESTS) --jsonfile-timing-events=bin/took-product.json --packages='$(MIXED)' -- \
	  -vet=off -timeout 25m -run '^($(TIMED))$$' || failed=1; \
	$(TESTS) --jsonfile-timing-events=bin/took-lab.json --packages=./areas/sandbox -- \
	  -vet=off -timeout 25m -run '$(LABS)' || failed=1; \
	$(TESTS) --jsonfile-timing-events=bin/took-waiting.json \
	  --packages='$(WAITING) $(filter-out $(shell $(GO) list $(PURE) $(MIXED) $(WAITING)),$(shell $(GO) list ./...))' -- \
	  -p 3 -vet=off -timeout 25m -skip '$(LABS)' || failed=1; \
	if [ -n "$$failed" ]; then echo 'FAIL: see above'; exit 1; fi # make lint vets

slowest: $(GOTESTSUM) ## how long the slowest tests of the last make test took
	@cat bin/took-*.json | $(GOTESTSUM) tool slowest --threshold 5s --num 40

# A program with the detector sleeps for a second before it exits, and tests start hundreds of them.
race: export GORACE := atexit_sleep_ms=50
race: RACED = $(TESTS) --hide-summary=skipped
race: RACING = -race -short -vet=off -p 3 -timeout 25m
race: $(GOTESTSUM) ## the packages with goroutines, under the race detector
	@$(COMPILE) -race $(BESIDE) $(WAITING) ./rigs/montecarlo >/dev/null 2>&1 || true
	# The other tests of rigs/montecarlo compute the same way, for minutes.
	$(GO) test -race -short -vet=off -timeout 25m -run '^(TestReproducible|TestTables)$$' ./rigs/montecarlo
	@failed=; \
	$(RACED) --packages='$(BESIDE)' -- $(RACING) || failed=1; \
	$(RACED) --packages='$(WAITING)' -- $(RACING) || failed=1; \
	if [ -n "$$failed" ]; then echo 'FAIL: see above'; exit 1; fi

$(GOTESTSUM): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$@ gotest.tools/gotestsum

$(LINT): tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

lint: $(LINT) ## golangci-lint at the version that tools/go.mod pins
	GOGC=400 GOMEMLIMIT=4GiB $(LINT) run ./...

quick: ## for the loop of an edit: vet everything, test the packages that compute (57 s of CPU time)
	$(GO) vet ./...
	$(GO) test -short -vet=off $(QUICK)

check: ## what a change must pass before it is sent
	$(MAKE) lint race test

bench: ## the generator against wrk and net/http, and its lateness
	$(GO) run ./rigs/cmd/tare-bench

simulate: ## the search, the signatures and the statistics against simulated truth (about half an hour)
	$(GO) run ./rigs/cmd/tare-simulate
	$(GO) run ./rigs/cmd/tare-simulate -worlds 10000 -seed 1
	$(GO) run ./rigs/cmd/tare-simulate -stat
	$(GO) run ./rigs/cmd/tare-simulate -turns -n 40 -seed 1

calibrate: build ## tare against servers of known capacity (twenty minutes), planted costs (an hour) and planted breaches (two)
	$(GO) run ./rigs/cmd/tare-calibrate -servers -n 1 -parallel 2 -out bin/servers.json \
	  areas/identity/testdata/capacity.yaml.tmpl
	$(GO) run ./rigs/cmd/tare-calibrate -n 40 -busy 2 areas/sandbox/examples/aa.yaml
	$(GO) run ./rigs/cmd/tare-calibrate -n 20 -busy 2 areas/sandbox/examples/planted.yaml
	TARE_GUARD_RUNS=20 $(GO) test ./rigs/controls -v -timeout 3h

# The index of the gallery is the list of its commands. A run whose record is in bin/gallery is not measured again: remove
# its folder there first.
gallery: build ## write the pages of docs/gallery, from runs of half an hour together
	$(GO) build -o bin/hash ./areas/exec/examples/hash
	@grep '^    tare run ' docs/gallery/README.md | while read -r _ _ args; do \
	  file=$${args%%.yaml*} name=$${file##*/}; \
	  ls -d bin/gallery/$$name-2* >/dev/null 2>&1 || eval "bin/tare run $$args --results bin/gallery" </dev/null; \
	  bin/tare report $$name --results bin/gallery -o html=docs/gallery/$$name.html </dev/null; \
	  case $$? in 0|10|11|12) ;; *) echo "no page of $$name: remove bin/gallery/$$name-*"; exit 1;; esac; done
	$(GO) test -count=1 -run '^TestGallery$$' ./cmd/tare -update

fuzz: ## every fuzz target for 30 s each
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
	  echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime 30s $$p || exit 1; done; done

schema: ## regenerate the JSON Schemas
	$(GO) test ./cmd/tare ./internal/report -run Schema -update

# Static, and with nothing of this host in them. RELEASES=URL is where the files will be downloaded from.
HOST    := $(shell $(GO) env GOHOSTARCH)
RELEASE := CGO_ENABLED=0 GOOS=linux GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GOFIPS140=off
dist: ## release files for linux/amd64 and linux/arm64 in bin/dist (docs/howto/install.md)
	rm -rf bin/stage bin/dist
	mkdir -p bin/stage/share/completions
	@for a in amd64 arm64; do $(RELEASE) GOARCH=$$a $(GO) build -buildvcs=false -ldflags '-s -w $(LDFLAGS)' \
	  -o bin/stage/$$a/tare ./cmd/tare || exit 1; done
	cp LICENSE README.md CHANGELOG.md bin/stage/share
	@for s in bash zsh fish; do bin/stage/$(HOST)/tare completion $$s >bin/stage/share/completions/tare.$$s || exit 1; done
	@if bin/stage/$(HOST)/tare help man 2>&1 | grep -q '^ *tare man'; \
	then bin/stage/$(HOST)/tare man bin/stage/share/man/man1 >/dev/null; \
	else echo 'no man pages: tare has no command man'; fi
	@$(GO) run ./rigs/cmd/tare-dist -version '$(VERSION)' -commit '$(COMMIT)' -date '$(DATE)' -url '$(RELEASES)'

# The second time without the build cache: minutes of CPU time.
dist-check: dist ## build the release of this commit again in another folder and compare
	@case '$(VERSION)' in *dirty) echo 'commit your changes first'; exit 1;; esac
	@t=$$(mktemp -d) && trap 'rm -rf "$$t"' EXIT && git clone -q -n --shared . $$t/tare && \
	git -C $$t/tare checkout -q --detach $(COMMIT) && \
	GOCACHE=$$t/cache $(MAKE) -s -C $$t/tare dist VERSION='$(VERSION)' COMMIT='$(COMMIT)' DATE='$(DATE)' \
	  RELEASES='$(RELEASES)' && diff -r bin/dist $$t/tare/bin/dist && echo 'both builds are the same, byte for byte'

clean: ## remove what was built
	rm -rf bin
