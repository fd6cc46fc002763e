# The targets for developers and CI; `make` alone lists them.

GO            ?= go
CLANG_FORMAT  ?= $(shell command -v clang-format-14 || echo clang-format)
PREFIX        ?= /usr/local
SDKDIR        ?= build/sdk
FUZZTIME      ?= 10s
FUZZTIME_LONG ?= 1h
SIMSEEDS      ?= 10000
SIMFIRST      ?= 1
CORRUPTIONS   ?= 100000
KILLS         ?= 1000
KILLSEED      ?= 0
COPIES        ?= 1000
LOADED        ?= test demo demo-service
FLIPS         ?= 1000000
ARM64_CC      ?= aarch64-linux-gnu-gcc
TESTS         ?= lint test test-interop reproducible test-long
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# The oldest glibc of supported systems: Ubuntu 22.04 has 2.35, RHEL 9 has 2.34.
GLIBC         := 2.34

ABI      := softdoca/abi
CABI     := internal/doca/internal/cabi
UCX      := internal/ucx
SOFTDEV  := softdoca/device
# Relative to their directories: make cannot handle names of files with spaces, which the path of a checkout may have.
PARALLEL_C := -j$(shell nproc) --output-sync=target
SOFTDOCA   := -C softdoca BUILD=../build/softdoca CC='$(CC)' CXX='$(CXX)'
CABI_TEST  := $(PARALLEL_C) -C $(CABI)/ctest OUT=../../../../../build/softdoca/device
UCX_TEST    = $(UCX_C:%=$(PARALLEL_C) -C %/ctest OUT=../../../build/ctest-ucx)
SDK        := $(SOFTDOCA) SDKDIR=$(abspath $(SDKDIR)) PREFIX=$(abspath $(PREFIX)) DESTDIR=$(abspath $(DESTDIR))
TOOL     := $(GO) tool -modfile=tools/go.mod
GO_TEST  := GO='$(GO)' scripts/go-test.sh
# The end-to-end tests mostly wait for processes, so many more of them run in parallel than there are CPUs; other
# packages wait as well. On a machine that is busy with other work a package may take longer than the ten minutes that
# Go gives it.
PARALLEL := -p 4 -parallel 32 -timeout 40m
# Half of the time for linking goes to debug information, and `make lint` vets all packages.
QUICK_BUILD := -vet=off -ldflags=-w
# The table of library functions is read-only after the start; C checks its stack and buffers. Published programs are
# also position independent (pie); elsewhere the start is faster without the relocations of Go's tables (exe).
BUILDMODE ?= exe
GO_LDFLAGS = -X github.com/dma-copy/dma-copy/internal/release.version=$(VERSION) -extldflags "-Wl,-z,relro,-z,now"
GO_BUILD   = $(GO) build -buildmode=$(BUILDMODE) -trimpath -buildvcs=false -ldflags '$(GO_LDFLAGS)'
# Some compilers define _FORTIFY_SOURCE by themselves, and warn of another value.
HARDENED_CFLAGS := -O2 -g -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
WARNINGS := -Wall -Wextra -Werror
C_FILES   = $(shell find cmd internal lab softdoca -name '*.[ch]')
GO_FILES  = $(shell find cmd internal lab softdoca tools -name '*.go')

# The binaries do not contain the path of the checkout, so that other checkouts find it in Go's cache.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
# The binding of UCX is built where UCX's headers are installed (package libucx-dev); elsewhere it reports what to
# install. Its library is looked up at run time. The headers are those of any architecture, but a compiler for another
# one does not look for them where they are.
PORTABLE_GOFLAGS := $(GOFLAGS)
ifneq ($(shell pkg-config --atleast-version=1.13 ucx 2>/dev/null && echo found),)
export GOFLAGS := $(strip $(GOFLAGS) -tags=ucx)
UCX_C = $(UCX)
UCX_INCLUDE := $(shell pkg-config --variable=includedir ucx)
endif

.DEFAULT_GOAL := help
# Every target that `make help` lists.
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*\#\# .*/\1/p' $(MAKEFILE_LIST))
# Targets that run in parallel would compete for the CPUs and mix their output.
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: export CGO_CFLAGS = $(HARDENED_CFLAGS)
build: ## build bin/dma-copy
	@GO='$(GO)' scripts/need.sh
	$(GO_BUILD) -o bin/dma-copy ./cmd/dma-copy

build-arm64: export CGO_ENABLED = 1
build-arm64: export GOARCH = arm64
build-arm64: export CC = $(ARM64_CC)
build-arm64: export CGO_CFLAGS = $(HARDENED_CFLAGS) $(UCX_INCLUDE:%=-idirafter %)
build-arm64: ## build bin/dma-copy-arm64 for the DPU; needs gcc-aarch64-linux-gnu and libc6-dev-arm64-cross
	$(GO_BUILD) -o bin/dma-copy-arm64 ./cmd/dma-copy

completions: build ## scripts for completion in bash, zsh and fish in build/completions
	mkdir -p build/completions/bash build/completions/zsh build/completions/fish
	bin/dma-copy completion bash > build/completions/bash/dma-copy
	bin/dma-copy completion zsh > build/completions/zsh/_dma-copy
	bin/dma-copy completion fish > build/completions/fish/dma-copy.fish

# The date of the pages is that of the commit, so that they are the same in each build.
man reference: export CGO_CFLAGS = $(HARDENED_CFLAGS)
man: ## manual pages in build/man
	$(GO_BUILD) -o build/tools/pages ./internal/pages
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2> /dev/null || date +%s)}" \
		build/tools/pages manual build/man

reference: ## the pages of docs/reference
	$(GO_BUILD) -o build/tools/pages ./internal/pages
	build/tools/pages reference docs/reference

all: build man completions licences ## build everything that `make install` installs

# It builds nothing: it may run as a user who has no Go, and should leave no files in the checkout.
install: ## install what `make all` has built below $(PREFIX) (default /usr/local)
	DESTDIR='$(DESTDIR)' scripts/install.sh install '$(abspath $(PREFIX))'

uninstall: ## remove what `make install` has installed below $(PREFIX)
	DESTDIR='$(DESTDIR)' scripts/install.sh uninstall '$(abspath $(PREFIX))'

test-install: all ## install and uninstall in an empty directory
	scripts/test-install.sh

hardening: BUILDMODE = pie
hardening: build build-arm64 ## the binaries are hardened, and need only a C library that supported systems have
	$(GO) -C tools test ./elfcheck
	$(GO) -C tools run ./elfcheck -glibc $(GLIBC) '$(CURDIR)/bin/dma-copy' '$(CURDIR)/bin/dma-copy-arm64'

licences: ## licences of linked modules against packaging/licences.txt; their texts and an SBOM in build/licences
	@mkdir -p build/licences
	$(GO) build -C tools/packaging -o '$(CURDIR)/build/tools/' ./licences
	build/tools/licences -allow packaging/licences.txt -notices build/licences/THIRD_PARTY_NOTICES \
		-sbom build/licences/sbom.cdx.json -version $(VERSION) ./cmd/dma-copy

packages: BUILDMODE = pie
# nfpm is built here and not run by `go tool`, which would set the architecture of the packages for it.
packages: build build-arm64 man completions licences ## deb and rpm of VERSION for amd64 and arm64 in build/packages
	$(GO) build -C tools/packaging -o '$(CURDIR)/build/tools/' github.com/goreleaser/nfpm/v2/cmd/nfpm
	VERSION='$(VERSION)' GLIBC=$(GLIBC) STRIP_ARM64=$(ARM64_CC:%gcc=%strip) scripts/packages.sh

test-packages: packages ## install, use, upgrade and remove the packages in a clean Debian; needs root, see the script
	GLIBC=$(GLIBC) STRIP_ARM64=$(ARM64_CC:%gcc=%strip) scripts/test-packages.sh

reproducible: ## packages of the last commit, made twice in different directories, are the same
	VERSION='$(VERSION)' scripts/reproducible.sh

test: ## all tests, in Go and C; lists the slowest
	@GO='$(GO)' scripts/need.sh cc cmp
	@mkdir -p build
	$(MAKE) --no-print-directory test-beside > build/test-beside.log 2>&1 & beside=$$!; result=0; \
		SLOWEST=20 $(GO_TEST) -count=1 $(QUICK_BUILD) $(PARALLEL) ./... || result=1; \
		wait $$beside || result=1; cat build/test-beside.log; exit $$result

# These tests use the CPUs while the Go tests of the program wait.
.PHONY: test-beside
test-beside:
	$(GO) -C lab test -count=1 $(QUICK_BUILD) ./...
	$(MAKE) $(SOFTDOCA) test-device
	$(MAKE) $(CABI_TEST) test
	$(if $(UCX_C),$(MAKE) $(UCX_TEST) test)

test-arm64: build build-arm64 ## the arm64 build under emulation; also needs qemu-user-static
	GOFLAGS='$(PORTABLE_GOFLAGS)' GO='$(GO)' ARM64_CC='$(ARM64_CC)' scripts/test-arm64.sh

test-loaded: ## make LOADED ("test demo demo-service") ROUNDS times (3) while eight loops use the CPUs and one the disk
	scripts/test-loaded.sh $(LOADED)

# A daemon takes as long as six files or trees. RACE=-race runs them under the race detector.
SIM_TEST = $(GO) test $(RACE) -count=1 -timeout 0
test-sim: ## SIMSEEDS simulations of files and trees with faults (default 10000), a sixth of a daemon; from SIMFIRST on
	$(SIM_TEST) ./internal/dmaxfer -run 'Test(Tree)?Simulation' -sim.first=$(SIMFIRST) -sim.seeds=$(SIMSEEDS)
	$(SIM_TEST) ./internal/service -run TestSimulation -sim.first=$(SIMFIRST) -sim.seeds=$$(($(SIMSEEDS) / 6 + 1))
	$(SIM_TEST) ./internal/dmaxfer/pump -run TestAny -rapid.checks=$(SIMSEEDS)

# Tests that take too long for CI; a release runs them.
test-long: ## each sweep and simulation LONG times (default 100), plain and under race; long tests in full; hours
	GO='$(GO)' LONG='$(LONG)' FIRST='$(FIRST)' ONLY='$(ONLY)' scripts/test-long.sh

test-corruption: ## CORRUPTIONS corrupted chunks (default 100000) on the software device
	$(GO) test -count=1 -timeout 0 ./internal/dmaxfer -run TestNoWrongByteIsKept -corruptions=$(CORRUPTIONS)

# Real processes are killed, so the same seed may hit other phases when it is repeated. -v shows which ones it hit.
CRASH_TEST := $(GO) test -count=1 -timeout 0 -v ./cmd/dma-copy/e2e
test-kill: ## KILLS copies with a side that is killed (default 1000); a tenth as many interrupted, stopped, of a service
	$(CRASH_TEST) -run TestCrashAtRandomTime -kill.count=$(KILLS) -kill.seed=$(KILLSEED)
	$(CRASH_TEST) -run TestSignalAtRandomTime -signal.count=$$(($(KILLS) / 10 + 1)) -signal.seed=$(KILLSEED)
	$(CRASH_TEST) -run TestStallAtRandomTime -stop.count=$$(($(KILLS) / 10 + 1)) -stop.seed=$(KILLSEED)
	$(CRASH_TEST) -run TestTreeCrashAtRandomTime -tree.kills=$$(($(KILLS) / 10 + 1)) -tree.seed=$(KILLSEED)
	$(CRASH_TEST) -run 'Test(Daemon|Command)CrashAtRandomTime' -daemon.kills=$$(($(KILLS) / 10 + 1)) \
		-daemon.seed=$(KILLSEED)

test-escape: ## FLIPS exchanges of directories and symlinks (default 1000000) in a share that is used meanwhile
	$(GO) test -count=1 -timeout 0 -v ./internal/share -run TestNothingEscapes -share.flips=$(FLIPS)

test-interop: ## copies between this program and PREVIOUS, a release, commit or program; default: the release before
	GO='$(GO)' scripts/interop.sh '$(PREVIOUS)'

test-rdma: build ## copies over real verbs between two emulated machines; CASES="verbs copy" limits them; Debian only
	$(GO) test -c -o build/rdma/ucx.test ./internal/ucx
	lab/rdma/test.sh $(CASES)

test-page: ## the status page in headless Chromium, installed if missing (Debian); SCREENSHOTS=DIR keeps pictures
	GO='$(GO)' scripts/test-page.sh $(SCREENSHOTS)

# The checkout must not change meanwhile. The comparison with rsync needs rsync.
trees: ## copy this checkout and the sources of Go as trees, both ways, and compare them with find and rsync
	$(GO) test -count=1 -timeout 0 -v ./cmd/dma-copy/e2e -run TestRealTrees \
		-trees="$(CURDIR):$$($(GO) env GOROOT)/src"

soak: ## COPIES copies in one process (default 1000), a tenth as many in two, ten times as many of a daemon: no leaks
	$(GO) test -count=1 -timeout 0 -v ./cmd/dma-copy/e2e -run 'Test(Daemon)?Soak' \
		-soak.copies=$(COPIES) -soak.commands=$$(($(COPIES) * 10))

# Tests in one goroutine, or of what is not in Go, that take long under the race detector: of what a loss of power
# leaves, of symlinks that another process makes, of deep trees and large attributes, of the kit, of allocations.
NOT_UNDER_RACE := ^Test(TreeSurvivesALossOfPower|NothingLeadsOut|DeepTree|ManyLargeAttributesArrive|$\
Kit|\w+AllocateNothing)$$
# Packages that start goroutines, or whose tests do.
GOROUTINES := ^[[:space:]]*go [[:alpha:].]+\(|\.(Go|Parallel)\(
# Copies of the whole program, of each kind once: how it works with other processes is the same without the detector.
E2E_UNDER_RACE := ^TestScripts$$/^(dpu_sends|fleet.*|host_sends|local_tree|network.*|progress_signal|$\
reference_(dpu|host)_sends|resume|service|service_ends|stopped_dpu|streams|tree_kinds|verify_tree)$$|$\
^Test(CopiesBesideADaemon|DaemonDrains|FastPath|ReloadUnderLoad|StatusPageOfADaemon|StopsOverUCX|$\
StoppedCommands|Tree|TreeUpdate)$$
race: ## the Go tests of packages with goroutines under the race detector, and of the whole program some
	$(GO_TEST) -race -count=1 $(QUICK_BUILD) $(PARALLEL) -skip '$(NOT_UNDER_RACE)' \
		$$(grep -rlE '$(GOROUTINES)' --include='*.go' cmd internal | \
			xargs dirname | sort -u | grep -v /e2e$$ | sed 's|^|./|')
	$(GO_TEST) -race -count=1 $(QUICK_BUILD) $(PARALLEL) -run '$(E2E_UNDER_RACE)' ./cmd/dma-copy/e2e

sdk: ## the development kit in $(SDKDIR) (default build/sdk): DOCA's headers and libraries over the software device
	$(MAKE) $(SDK)

install-sdk: ## install the development kit below $(PREFIX) (default /usr/local)
	$(MAKE) $(SDK) install

sdk-test: build ## test the kit: C programs built against it, and bin/dma-copy loading it as DOCA
	$(MAKE) $(SDK) test-kit
	scripts/test-sdk.sh $(abspath $(SDKDIR)) bin/dma-copy

nocgo: export CGO_ENABLED = 0
nocgo: ## build, vet and test without cgo, where only the stub device exists
	$(GO) build ./...
	$(GO) vet ./...
	$(GO_TEST) -count=1 ./internal/doca/... ./internal/comch/... ./cmd/dma-copy ./internal/cli/doctor

# Scripts that copy, but end no peer, which would take an idle timeout each because with the quirks nothing reports it.
QUIRK_COPIES := TestScripts/(host_sends|dpu_sends|overwrite|reference_host|reference_dpu|small_device|ping)$$
# Tests over a channel and a window in memory, without a device, and of the kit, which is the same device.
WITHOUT_QUIRKS := ^Test((Tree)?Simulation|Every(Native)?MessageFails|Every(File|Device)Call(Fails|Hangs)|$\
PeerThatStops|SlowTrees|TreeSurvivesALossOfPower|UnequalIdleTimeouts|OptionsBindBothSides|Kit)
quirks: export DMA_COPY_SOFT_QUIRKS = all
quirks: ## the Go tests with all quirks: behaviour of hardware that differs from its documentation
	$(GO_TEST) -count=1 $(QUICK_BUILD) -timeout 20m -skip '$(WITHOUT_QUIRKS)' ./internal/doca ./internal/comch/... \
		./internal/dmaxfer ./internal/dmaxfer/job ./internal/dmaxfer/native ./internal/dmaxfer/reference \
		./internal/ping
	$(GO_TEST) -count=1 $(QUICK_BUILD) -run '$(QUIRK_COPIES)' ./cmd/dma-copy/e2e

# A test expects an error when it allocates too much memory. The libraries of the kit are built without the sanitizer,
# one test waits for a modelled bandwidth, two count mappings and one memory, of which the sanitizer takes its own. The
# C tests are built with both sanitizers at once.
asan: export ASAN_OPTIONS = allocator_may_return_null=1
asan: ## the C tests under AddressSanitizer and UBSan, and the Go tests of device layer and UCX under AddressSanitizer
	$(MAKE) $(SOFTDOCA) ubsan
	$(MAKE) $(CABI_TEST) ubsan
	$(if $(UCX_C),$(MAKE) $(UCX_TEST) ubsan)
	$(GO_TEST) -asan -count=1 -timeout 20m -skip '^Test(Kit|EnginesShareTheModelledBandwidth)' ./internal/doca/...
	$(if $(UCX_C),$(GO_TEST) -asan -count=1 -skip '^Test(NothingLeaks|SharedMemoryDoesNotLeak|WorkerMemory)$$' \
		./$(UCX))

tsan: ## the C tests under ThreadSanitizer
	$(MAKE) $(SOFTDOCA) tsan
	$(MAKE) $(CABI_TEST) tsan
	$(if $(UCX_C),$(MAKE) $(UCX_TEST) tsan)

headers: ## each C header compiles alone, as C11 and as C++17
	$(MAKE) $(SOFTDOCA) headers
	CC='$(CC)' CXX='$(CXX)' CFLAGS='$(WARNINGS) -I$(ABI)' \
		softdoca/test/headers.sh $(CABI) $(UCX_C)

# Go's own runtime/cgo needs the exception, and C of others is not built. The second command compiles our C without it.
cgo-warnings: export CGO_CFLAGS = -O2 -g $(WARNINGS) -Wno-unused-parameter
cgo-warnings: ## our C compiles without warnings, with and without cgo
	$(GO) build $$($(GO) list -f '{{if .CgoFiles}}{{.ImportPath}}{{end}}' ./...)
	$(CC) -std=gnu11 $(WARNINGS) -I$(ABI) -iquote $(SOFTDEV) -fsyntax-only \
		$(CABI)/*.c $(SOFTDEV)/*.c $(UCX_C:%=%/*.c)

lint: ## formatting, line width, commit subjects, vet, staticcheck, go.mod; changes nothing
	scripts/lint-test.sh
	scripts/release-test.sh
	scripts/need-test.sh
	scripts/failed-test.sh
	scripts/group-test.sh
	GO='$(GO)' scripts/vuln-test.sh
	@command -v shellcheck > /dev/null || { echo "shellcheck is missing: apt-get install shellcheck"; exit 1; }
	$(TOOL) actionlint .github/workflows/*.yml
	scripts/commits.sh
	scripts/width.sh
	@unformatted=$$(gofmt -l $(GO_FILES)); test -z "$$unformatted" || \
		{ echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	@$(CLANG_FORMAT) --dry-run --Werror $(C_FILES)
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	$(GO) -C lab vet ./...
	cd lab && $(GO) tool -modfile=../tools/go.mod staticcheck ./...
	$(GO) -C lab mod tidy -diff
	$(GO) -C tools mod tidy -diff
	$(GO) -C tools/packaging mod tidy -diff
	$(GO) -C tools/packaging test ./licences

fmt: ## format all Go and C files
	gofmt -w $(GO_FILES)
	$(CLANG_FORMAT) -i $(C_FILES)

imports: ## draw docs/internals/architecture.svg, the picture of the packages and their imports
	$(GO) build -C tools -o '$(CURDIR)/build/tools/' ./imports
	build/tools/imports

site: ## build the site of the pages in build/site/dist; needs node and npm
	scripts/site.sh

recordings: build ## write the recordings of terminals that README.md shows, from copies on the software device
	DMA_COPY_TEST_PROGRAM='$(CURDIR)/bin/dma-copy' \
		$(GO) test -count=1 ./cmd/dma-copy/e2e -run TestPages/README.md -update

test-netns: build ## copies between network namespaces over links that lose, delay and are cut; needs root
	lab/scripts/test-netns.sh

examples-check: ## examples/fleet (needs shellcheck and ansible-lint); examples/grafana with the metrics of a daemon
	GO='$(GO)' scripts/examples-check.sh

unit-check: ## the systemd unit is valid, and its exposure is at most 2.0; needs systemd-analyze (package systemd)
	scripts/unit-check.sh

fuzz: ## each fuzz target for FUZZTIME (default 10s); 3000x is that many inputs
	GO='$(GO)' scripts/fuzz.sh $(FUZZTIME)

fuzz-long: ## each fuzz target for FUZZTIME_LONG (default 1h)
	GO='$(GO)' scripts/fuzz.sh $(FUZZTIME_LONG)

demo: ## copy a file between two processes over the software device
	@GO='$(GO)' scripts/need.sh cmp
	$(MAKE) --no-print-directory build
	scripts/demo.sh

demo-service: build ## a daemon and commands with keys over the software device, as in docs/guide/service.md
	scripts/demo-service.sh

bench: build limit bin/lab ## measure beside other tools, and update docs/; BENCH="disk engine" limits it
	lab/scripts/bench.sh $(BENCH)

bench-page: bin/lab ## the summary and drawings of docs/internals/benchmarks.md from the records in lab/results
	bin/lab page lab/results docs/internals

.PHONY: bin/lab
bin/lab:
	$(GO) build -C lab -o '$(CURDIR)/bin/lab' .

limit: bin/dma-copy-limit ## build bin/dma-copy-limit, the C program that the lab takes as the upper bound

bin/dma-copy-limit: lab/limit/limit.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 $(CFLAGS) $(WARNINGS) -pthread -o $@ $<

profile: build ## CPU profiles of both sides of a copy of 1 GiB; SIZE and SENDER (host, dpu) choose another
	GO='$(GO)' lab/scripts/profile.sh

linear: build ## time per MiB and memory of copies from 64 MiB to 16 GiB; SIZES (in MiB), ROUNDS, DIR: see the script
	lab/scripts/linear.sh

changes: build ## what is read and sent of a file that has changed, beside rsync; SIZE (in MiB), DIR: see the script
	lab/scripts/changes.sh

instructions: ## instructions per task, message, small file and start, beside recorded numbers; needs valgrind
	CC='$(CC)' GO='$(GO)' lab/scripts/instructions.sh

# 75: the database cannot be read.
vuln: ## known vulnerabilities in code that the program calls; without vuln.go.dev it fails only if VULN_REQUIRED is set
	GO='$(GO)' scripts/vuln.sh || { [ $$? -eq 75 ] && [ -z '$(VULN_REQUIRED)' ]; }

cover: ## test coverage, in coverage/index.html
	rm -rf coverage && mkdir -p coverage/data
	$(GO) test -count=1 $(PARALLEL) -coverpkg=./... ./... -args -test.gocoverdir='$(CURDIR)/coverage/data'
	$(GO) tool covdata textfmt -i=coverage/data -o coverage/profile
	$(GO) tool cover -html=coverage/profile -o coverage/index.html
	$(GO) tool cover -func=coverage/profile | tail -n 1

# The state of the repository is not stamped into the programs: a release is built from a clean commit that its version
# names, and the same files without .git give the same programs.
RELEASE_MAKE = GOFLAGS='$(strip $(PORTABLE_GOFLAGS) -buildvcs=false)' $(MAKE) VERSION=v$$(scripts/release.sh version)
release-dry-run: export SOURCE_DATE_EPOCH = $(shell git -c safe.directory='*' log -1 --format=%ct)
release-dry-run: ## all of a release but publishing it, in build/release; TESTS= runs no tests, TESTS="lint test" these
	scripts/release.sh check
	$(if $(strip $(TESTS)),$(MAKE) $(TESTS))
	$(RELEASE_MAKE) BUILDMODE=pie build build-arm64 hardening packages
	$(RELEASE_MAKE) release-files

release-files: ## the last step of release-dry-run, after build, build-arm64 and packages; needs SOURCE_DATE_EPOCH
	scripts/release.sh assemble

ci: ## everything that CI runs, in the same order
	.ci/run

clean: ## remove the files that other targets create
	rm -rf bin build coverage softdoca/build softdoca/examples/build
