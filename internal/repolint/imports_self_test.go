package repolint

import (
	"slices"
	"testing"
)

const (
	cabiPackage   = docaInternal + "/cabi"
	devicePackage = softdocaFolder + "/device"
	abiPackage    = softdocaFolder + "/abi"
)

// ours returns the import paths of packages of the module.
func ours(folders ...string) (paths []string) {
	for _, folder := range folders {
		paths = append(paths, modulePath+"/"+folder)
	}
	return paths
}

// Files that break no rule.
var goodFiles = []sourceFile{
	{path: "cmd/dma-copy/main.go", imports: ours("internal/dmaxfer"), uses: []string{"os.Exit"}},
	{path: "internal/cli/root/root.go", imports: append(ours("internal/doca"), "github.com/spf13/cobra")},
	{path: "cmd/dma-copy/main_test.go", imports: []string{"log"}, test: true, uses: []string{"os.Exit"}},
	{path: libraryLogFile, imports: []string{"log"}},
	{path: "internal/cli/doctor/checks.go", imports: ours("internal/cli/output", "internal/doca")},
	{path: "internal/cli/option/load.go", imports: []string{"github.com/spf13/pflag", viper}},
	{path: "internal/placement/cpus.go", uses: []string{"runtime.GOMAXPROCS", "C.sched_setaffinity"}},
	{path: "internal/dmaxfer/pump/cpus_test.go", test: true, uses: []string{"runtime.GOMAXPROCS"}},
	{path: "internal/dmaxfer/run.go", imports: ours("internal/dmaxfer/native", "internal/dmaxfer/reference")},
	{path: "internal/dmaxfer/native/lanes.go", imports: ours("internal/dmaxfer/pump"), startsGoroutine: true},
	{path: "internal/dmaxfer/native/window/slots.go", imports: ours("internal/dmaxfer/native/link")},
	{path: "internal/dmaxfer/pump/pump.go", imports: ours("internal/dmaxfer/disk", "internal/negotiate/native")},
	{path: "internal/negotiate/wire/codec.go", imports: []string{"errors", "encoding/binary", "net/netip"}},
	{path: "internal/negotiate/wire/codec_test.go", imports: []string{"os"}, test: true},
	{path: "internal/negotiate/wire/wiretest/vectors.go", imports: append(ours("internal/negotiate/wire"), "os")},
	{path: "internal/negotiate/native/offer.go", imports: ours("internal/negotiate/reference")},
	{path: "internal/comch/comchtest/pair.go", imports: append(ours("internal/comch"), "sync")},
	{path: "internal/dmaxfer/dial_test.go", imports: ours("internal/comch/comchtest"), test: true},
	{path: "internal/doca/device.go", imports: append(ours(cabiPackage, "internal/quote"), "github.com/rs/zerolog")},
	{path: cabiPackage + "/cabi.go", imports: append(ours(devicePackage, abiPackage), "C", "unsafe")},
	{path: devicePackage + "/device.go", imports: append(ours(abiPackage), "C")},
}

// Files of which each breaks the rule that it is listed under, and no other.
var badFiles = map[string][]sourceFile{
	"every package has a layer": {
		{path: "internal/util/strings.go"},
		{path: "doc.go"},
		{path: "internal/docalike/device.go"},
	},
	"imports go down the layers": {
		{path: "internal/comch/conn.go", imports: ours("internal/negotiate/wire")},
		{path: "internal/negotiate/reference/offer.go", imports: ours("internal/negotiate/native")},
		{path: "internal/comch/comchtest/pair.go", imports: ours("internal/dmaxfer/disk")},
		{path: "internal/doca/device_test.go", imports: ours("internal/comch"), test: true},
		{path: "internal/dmaxfer/run.go", imports: ours("internal/cli/output")},
		{path: "internal/dmaxfer/native/sender.go", imports: ours("internal/dmaxfer/reference")},
		{path: "internal/dmaxfer/reference/sender.go", imports: ours("internal/dmaxfer/native/window")},
		{path: "internal/dmaxfer/disk/partial.go", imports: ours("internal/dmaxfer/native")},
		{path: "internal/quote/quote.go", imports: ours("internal/doca")},
		{path: devicePackage + "/device.go", imports: ours(cabiPackage)},
		{path: abiPackage + "/abi.go", imports: ours(devicePackage)},
	},
	"children do not import their parent": {
		{path: "internal/comch/wire/message.go", imports: ours("internal/comch")},
		{path: "internal/dmaxfer/native/window/slots.go", imports: ours("internal/dmaxfer/native")},
		{path: "internal/dmaxfer/disk/journal/parse_test.go", imports: ours("internal/dmaxfer/disk"), test: true},
	},
	"test support only in tests": {
		{path: "internal/dmaxfer/dial.go", imports: ours("internal/comch/comchtest")},
		{path: "cmd/dma-copy/copy.go", imports: ours("cmd/dma-copy/e2e/filetree")},
	},
	"only doca imports its internal packages and softdoca": {
		{path: "cmd/dma-copy/devices.go", imports: ours(cabiPackage)},
		{path: "internal/comch/conn.go", imports: ours(cabiPackage + "/ops")},
		{path: "internal/ping/ping.go", imports: ours(devicePackage)},
	},
	"negotiate is pure": {
		{path: "internal/negotiate/wire/codec.go", imports: []string{"os"}},
		{path: "internal/negotiate/wire/codec.go", imports: []string{"net/url", "net"}},
		{path: "internal/negotiate/wire/codec.go", imports: ours("internal/quote")},
		{path: "internal/negotiate/native/offer.go", imports: []string{"sync/atomic"}},
		{path: "internal/negotiate/native/session.go", startsGoroutine: true},
	},
	"cgo only in cabi, softdoca and ucx": {
		{path: "internal/doca/device.go", imports: []string{"C"}},
	},
	"viper only in option": {
		{path: "cmd/dma-copy/root.go", imports: []string{viper}},
		{path: "internal/dmaxfer/options.go", imports: []string{viper}},
	},
	"cobra only in root": {
		{path: "internal/comch/flags.go", imports: []string{"github.com/spf13/cobra"}},
		{path: "internal/comch/flags.go", imports: []string{"github.com/spf13/pflag"}},
		{path: "internal/cli/config/command.go", imports: []string{"github.com/spf13/cobra"}},
	},
	"no global logger": {
		{path: "cmd/dma-copy/log.go", imports: []string{"github.com/rs/zerolog/log"}},
	},
	"no other log package": {
		{path: "internal/doca/device.go", imports: []string{"log"}},
		{path: "internal/doca/device.go", imports: []string{"log/slog"}},
		{path: "internal/daemon/metrics/server.go", imports: []string{"log"}},
	},
	"only main exits": {
		{path: "cmd/dma-copy/root.go", uses: []string{"os.Exit"}},
		{path: "internal/dmaxfer/main.go", uses: []string{"os.Exit"}},
	},
	"process-wide state only in placement": {
		{path: "cmd/dma-copy/cpus.go", uses: []string{"runtime.GOMAXPROCS"}},
		{path: "internal/dmaxfer/pump/lanes.go", uses: []string{"golang.org/x/sys/unix.SchedSetaffinity"}},
		{path: devicePackage + "/thread.c", uses: []string{"C.pthread_setaffinity_np"}},
	},
}

func TestGoodFilesBreakNoRule(t *testing.T) {
	for _, rule := range importRules {
		for _, violation := range check(rule, goodFiles) {
			t.Errorf("%s: %s", rule.name, violation)
		}
	}
	if users := importers(goodFiles, viper); !slices.Equal(users, []string{"internal/cli/option/load.go"}) {
		t.Errorf("files that import viper: %q", users)
	}
}

func TestBadFilesBreakTheirRule(t *testing.T) {
	for _, rule := range importRules {
		if len(badFiles[rule.name]) == 0 {
			t.Errorf("no file breaks %q", rule.name)
		}
	}
	for broken, files := range badFiles {
		for _, file := range files {
			if got := rulesBrokenBy(file); !slices.Equal(got, []string{broken}) {
				t.Errorf("%s with imports %q breaks %q, want %q alone", file.path, file.imports, got, broken)
			}
		}
	}
}

func rulesBrokenBy(file sourceFile) (names []string) {
	for _, rule := range importRules {
		if len(check(rule, []sourceFile{file})) > 0 {
			names = append(names, rule.name)
		}
	}
	return names
}

func TestParseGoFile(t *testing.T) {
	file := parseGoFile(t, "cmd/dma-copy/stop.go", `package main
		import system "os"
		import "github.com/rs/zerolog"
		func stop(l zerolog.Logger) { go func() { system.Exit(1) }() }`)
	if want := []string{"os", "github.com/rs/zerolog"}; !slices.Equal(file.imports, want) {
		t.Errorf("imports %q, want %q", file.imports, want)
	}
	if want := []string{"github.com/rs/zerolog.Logger", "os.Exit"}; !slices.Equal(file.uses, want) {
		t.Errorf("uses %q, want %q", file.uses, want)
	}
	if !file.startsGoroutine || file.test {
		t.Errorf("parsed %+v, want a file that starts a goroutine and is no test", file)
	}
}

// GOMAXPROCS(0) only returns the value.
func TestParseGoFileThatReadsGOMAXPROCS(t *testing.T) {
	reads := parseGoFile(t, "a.go", `package a; import "runtime"; var n = runtime.GOMAXPROCS(0) / runtime.NumCPU()`)
	if want := []string{"runtime.NumCPU"}; !slices.Equal(reads.uses, want) {
		t.Errorf("uses %q, want %q", reads.uses, want)
	}
	sets := parseGoFile(t, "a.go", `package a; import "runtime"; var n = runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) / 2)`)
	if want := []string{"runtime.GOMAXPROCS"}; !slices.Equal(sets.uses, want) {
		t.Errorf("uses %q, want %q", sets.uses, want)
	}
}

func TestParseCFile(t *testing.T) {
	file := parseCFile("softdoca/device/thread.c", `
		// my_set_mempolicy(1)
		if (sched_setaffinity (0, sizeof(set), &set))
			pthread_setaffinity_np(thread, sizeof(set), &set);`)
	if want := []string{"C.sched_setaffinity", "C.pthread_setaffinity_np"}; !slices.Equal(file.uses, want) {
		t.Errorf("uses %q, want %q", file.uses, want)
	}
}

func TestParseGoFileWithoutImports(t *testing.T) {
	file := parseGoFile(t, "internal/comch/exit_test.go", `package comch
		type door struct{ Exit func(int) }
		func leave(os door) { os.Exit(1) }`)
	if len(file.uses) > 0 || file.startsGoroutine || !file.test {
		t.Errorf("parsed %+v, want a test that uses no package and starts no goroutine", file)
	}
}
