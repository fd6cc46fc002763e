# Everything a developer or CI does here is a target; `make` alone lists them.

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
ARM64_CC      ?= aarch64-linux-gnu-gcc
VERSION       ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

ABI      := internal/doca/internal/abi
CABI     := internal/doca/internal/cabi
SOFTDEV  := internal/doca/internal/softdev
CTEST    := -C $(SOFTDEV)/ctest OUT=$(CURDIR)/build/ctest
SDK      := -C sdk SDKDIR=$(abspath $(SDKDIR)) PREFIX=$(abspath $(PREFIX)) DESTDIR=$(abspath $(DESTDIR)) CC='$(CC)' CXX='$(CXX)'
TOOL     := $(GO) tool -modfile=tools/go.mod
# Most of what the program's own tests do is wait for it.
AT_ONCE  := -parallel 8
WARNINGS := -Wall -Wextra -Werror
C_FILES   = $(shell find cmd internal sdk examples -name '*.[ch]')
GO_FILES  = $(shell find cmd internal -name '*.go')

.DEFAULT_GOAL := help
.PHONY: help build build-arm64 test test-arm64 test-sim test-corruption test-kill soak race nocgo quirks asan tsan headers cgo-warnings lint fmt imports fuzz fuzz-long demo linear vuln cover ci clean \
	install sdk install-sdk sdk-test bench profile instructions
# Two of these at once would fight for the processors and mix their output.
.NOTPARALLEL:

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/dma-copy
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/dma-copy ./cmd/dma-copy

build-arm64: export CGO_ENABLED = 1
build-arm64: export GOARCH = arm64
build-arm64: export CC = $(ARM64_CC)
build-arm64: ## build bin/dma-copy-arm64 for the DPU; needs gcc-aarch64-linux-gnu and libc6-dev-arm64-cross
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/dma-copy-arm64 ./cmd/dma-copy

install: build ## install bin/dma-copy below $(PREFIX), /usr/local if not set
	install -D -m 755 bin/dma-copy $(DESTDIR)$(PREFIX)/bin/dma-copy

test: ## all Go tests, then the C tests
	$(GO) test -count=1 $(AT_ONCE) ./...
	$(MAKE) $(CTEST) test

test-arm64: build build-arm64 ## the arm64 build under emulation; also needs qemu-user-static
	GO='$(GO)' ARM64_CC='$(ARM64_CC)' scripts/test-arm64.sh

test-sim: ## SIMSEEDS simulated copies that fail in some way, 10000 if not set, from seed SIMFIRST on
	$(GO) test -count=1 -timeout 0 ./internal/dmaxfer -run TestSimulation -sim.first=$(SIMFIRST) -sim.seeds=$(SIMSEEDS)
	$(GO) test -count=1 -timeout 0 ./internal/dmaxfer/pump -run TestAny -rapid.checks=$(SIMSEEDS)

test-corruption: ## CORRUPTIONS pieces that arrive changed, 100000 if not set, over the software device
	$(GO) test -count=1 -timeout 0 ./internal/dmaxfer -run TestNoWrongByteIsKept -corruptions=$(CORRUPTIONS)

# Kills are real ones, of real processes, so the same seed hits other moments again. -v shows what they hit.
ORDEAL := $(GO) test -count=1 -timeout 0 -v ./cmd/dma-copy/e2e
test-kill: ## KILLS copies of which a side is killed, 1000 if not set; a tenth as many with a side that is interrupted, or stopped
	$(ORDEAL) -run TestKilledAtAnyMoment -kill.count=$(KILLS) -kill.seed=$(KILLSEED)
	$(ORDEAL) -run TestInterruptedAtAnyMoment -signal.count=$$(($(KILLS) / 10 + 1)) -signal.seed=$(KILLSEED)
	$(ORDEAL) -run TestStoppedAtAnyMoment -stop.count=$$(($(KILLS) / 10 + 1)) -stop.seed=$(KILLSEED)

soak: ## COPIES copies in one process, 1000 if not set, and a tenth as many in two, after which nothing may be left
	$(GO) test -count=1 -timeout 0 -v ./cmd/dma-copy/e2e -run TestSoak -soak.copies=$(COPIES)

# A side that is killed or stopped at any moment tells more of files and peers than of goroutines.
WITHOUT_RACES := ^Test(Killed|Stopped)AtAnyMoment$$
race: ## the Go tests under the race detector
	$(GO) test -race -count=1 $(AT_ONCE) -skip '$(WITHOUT_RACES)' ./...

sdk: ## the development kit in $(SDKDIR), build/sdk if not set: DOCA's headers and libraries over the software device
	$(MAKE) $(SDK)

install-sdk: ## the development kit below $(PREFIX), /usr/local if not set
	$(MAKE) $(SDK) install

sdk-test: build ## the kit from outside: C programs built against it, and bin/dma-copy loading it as DOCA
	$(MAKE) $(SDK) test

nocgo: export CGO_ENABLED = 0
nocgo: ## build, vet and test without cgo, where only the stub device exists
	$(GO) build ./...
	$(GO) vet ./...
	$(GO) test -count=1 ./internal/doca/... ./internal/comch/... ./cmd/...

# Of the program, what copies: where the death of a peer goes unnoticed, by definition, each such test takes an idle timeout.
QUIRK_COPIES := TestScripts/(host_sends|dpu_sends|overwrite|reference_host|reference_dpu|small_device)$$
# What runs over a channel and a window in memory, so that no device can disturb it.
WITHOUT_DEVICE := ^(TestSimulation|TestEveryMessageFails|TestEveryNativeMessageFails|TestPeerThatStops)
quirks: export DMA_COPY_SOFT_QUIRKS = all
quirks: ## the Go tests over a device that does all that hardware does beside its documents
	$(GO) test -count=1 -skip '$(WITHOUT_DEVICE)' ./internal/doca/... ./internal/comch/... ./internal/dmaxfer
	$(GO) test -count=1 -run '$(QUIRK_COPIES)' ./cmd/dma-copy/e2e

# A test asks for more memory than there is, and expects to be told. The kit's libraries are loaded without the sanitizer.
asan: export ASAN_OPTIONS = allocator_may_return_null=1
asan: ## the C tests under AddressSanitizer and UndefinedBehaviorSanitizer, and the device layer's Go tests under the first
	$(MAKE) $(CTEST) asan ubsan
	$(GO) test -asan -count=1 -skip '^TestKit' ./internal/doca/...

tsan: ## the C tests under ThreadSanitizer
	$(MAKE) $(CTEST) tsan

headers: ## each C header compiles alone, as C11 and as C++17
	CC='$(CC)' CXX='$(CXX)' CFLAGS='$(WARNINGS) -I$(ABI)' scripts/headers.sh $(ABI) $(CABI) $(SOFTDEV)

# Without the exception Go's own runtime/cgo would not compile; our C is held to it by the second line.
cgo-warnings: export CGO_CFLAGS = -O2 -g $(WARNINGS) -Wno-unused-parameter
cgo-warnings: ## the C of the device layer has no warnings, under cgo or alone
	$(GO) build ./...
	$(CC) -std=gnu11 $(WARNINGS) -I$(ABI) -fsyntax-only $(CABI)/*.c $(SOFTDEV)/*.c

lint: ## formatting, commit subjects, vet, staticcheck, go.mod; changes nothing
	scripts/lint-test.sh
	scripts/commits.sh
	@unformatted=$$(gofmt -l $(GO_FILES)); test -z "$$unformatted" || \
		{ echo "gofmt would change:"; echo "$$unformatted"; exit 1; }
	@$(CLANG_FORMAT) --dry-run --Werror $(C_FILES)
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(GO) mod tidy -diff
	$(GO) -C tools mod tidy -diff

fmt: ## format all Go and C files
	gofmt -w $(GO_FILES)
	$(CLANG_FORMAT) -i $(C_FILES)

imports: ## write the import graph of docs/ARCHITECTURE.md
	$(GO) test -count=1 ./internal/repolint -run TestArchitecturePage -update

fuzz: ## each fuzz target for FUZZTIME, 10s if not set; 3000x is that many inputs
	GO='$(GO)' scripts/fuzz.sh $(FUZZTIME)

fuzz-long: ## each fuzz target for FUZZTIME_LONG, 1h if not set
	GO='$(GO)' scripts/fuzz.sh $(FUZZTIME_LONG)

demo: build ## copy a file between two processes over the software device
	scripts/demo.sh

bench: build ## measure, and write the tables and drawings of docs/BENCHMARKS.md; takes minutes, wants an idle machine. BENCH="disk engine" measures only these
	scripts/bench.sh $(BENCH)

profile: build ## where the time of a copy of 1 GiB goes on each side; SIZE and SENDER (host, dpu) choose another
	GO='$(GO)' scripts/profile.sh

linear: build ## the time of a copy for each mebibyte, from 64 MiB to 16 GiB; SIZES (in MiB) and ROUNDS choose others
	scripts/linear.sh

instructions: ## instructions of the engine's loop for one task, against those noted; UPDATE=1 notes them. Needs valgrind
	CC='$(CC)' scripts/instructions.sh

vuln: ## known vulnerabilities in what the program calls; asks vuln.go.dev
	$(TOOL) govulncheck ./...

cover: ## test coverage, as coverage/index.html
	rm -rf coverage && mkdir -p coverage/data
	$(GO) test -count=1 $(AT_ONCE) -coverpkg=./... ./... -args -test.gocoverdir=$(CURDIR)/coverage/data
	$(GO) tool covdata textfmt -i=coverage/data -o coverage/profile
	$(GO) tool cover -html=coverage/profile -o coverage/index.html
	$(GO) tool cover -func=coverage/profile | tail -n 1

ci: ## everything that CI runs, in its order
	.ci/run

clean: ## remove what the other targets made
	rm -rf bin build coverage
