package repolint

import (
	"slices"
	"testing"
)

// What a well-built module looks like to the law.
var lawfulFiles = []goFile{
	{path: "cmd/dma-copy/main.go", imports: []string{"os", modulePath + "/internal/dmaxfer"}, exits: true},
	{path: "cmd/dma-copy/config.go", imports: []string{viper, "github.com/spf13/cobra", modulePath + "/internal/doca"}},
	{path: "cmd/dma-copy/main_test.go", imports: []string{"log"}, test: true, exits: true},
	{path: "internal/dmaxfer/pump.go", imports: []string{"os", modulePath + "/internal/doca"}, startsGoroutine: true},
	{path: "internal/negotiate/codec.go", imports: []string{"errors", "encoding/binary", modulePath + "/internal/comch"}},
	{path: "internal/negotiate/codec_test.go", imports: []string{"os"}, test: true},
	{path: "internal/comch/comchtest/pair.go", imports: []string{"sync", modulePath + "/internal/comch"}},
	{path: "internal/doca/device.go", imports: []string{"github.com/rs/zerolog", modulePath + "/" + cabiRoom}},
	{path: cabiRoom + "/cabi.go", imports: []string{"C", "unsafe", modulePath + "/" + softdevRoom, modulePath + "/" + abiRoom}},
	{path: softdevRoom + "/device.go", imports: []string{"C", modulePath + "/" + abiRoom}},
}

// Each of these files breaks the rule of its name, and no other.
var unlawfulFiles = map[string][]goFile{
	"every file has a room": {
		{path: "internal/util/strings.go"},
		{path: "doc.go"},
		{path: "internal/docalike/device.go"},
	},
	"arrows point right": {
		{path: "internal/comch/conn.go", imports: []string{modulePath + "/internal/negotiate"}},
		{path: "internal/comch/comchtest/pair.go", imports: []string{modulePath + "/internal/dmaxfer/journal"}},
		{path: "internal/doca/device_test.go", imports: []string{modulePath + "/internal/comch"}, test: true},
		{path: "internal/dmaxfer/pump.go", imports: []string{modulePath + "/cmd/dma-copy/progress"}},
		{path: cabiRoom + "/cabi.go", imports: []string{modulePath + "/internal/doca"}},
		{path: softdevRoom + "/device.go", imports: []string{modulePath + "/" + cabiRoom}},
		{path: abiRoom + "/abi.go", imports: []string{modulePath + "/" + softdevRoom}},
	},
	"only doca sees its inside": {
		{path: "cmd/dma-copy/devices.go", imports: []string{modulePath + "/" + cabiRoom}},
		{path: "internal/comch/conn.go", imports: []string{modulePath + "/" + cabiRoom + "/ops"}},
		{path: "internal/bench/engine.go", imports: []string{modulePath + "/" + softdevRoom}},
	},
	"negotiate is pure": {
		{path: "internal/negotiate/codec.go", imports: []string{"os"}},
		{path: "internal/negotiate/codec.go", imports: []string{"net/netip"}},
		{path: "internal/negotiate/native/offer.go", imports: []string{"sync/atomic"}},
		{path: "internal/negotiate/session.go", startsGoroutine: true},
	},
	"cgo only inside doca": {
		{path: "internal/doca/device.go", imports: []string{"C"}},
	},
	"viper only in the program": {
		{path: "internal/dmaxfer/options.go", imports: []string{viper}},
		{path: "cmd/other/config.go", imports: []string{viper}},
	},
	"cobra only in cmd": {
		{path: "internal/comch/flags.go", imports: []string{"github.com/spf13/cobra"}},
		{path: "internal/comch/flags.go", imports: []string{"github.com/spf13/pflag"}},
	},
	"no global logger": {
		{path: "cmd/dma-copy/log.go", imports: []string{"github.com/rs/zerolog/log"}},
	},
	"no other log package": {
		{path: "internal/doca/device.go", imports: []string{"log"}},
		{path: "internal/doca/device.go", imports: []string{"log/slog"}},
	},
	"only main exits": {
		{path: "cmd/dma-copy/root.go", exits: true},
		{path: "internal/dmaxfer/main.go", exits: true},
	},
}

func TestLawAcceptsLawfulFiles(t *testing.T) {
	for _, rule := range arrowRules {
		if breaches := judge(rule, lawfulFiles); len(breaches) > 0 {
			t.Errorf("%s: %q", rule.name, breaches)
		}
	}
	if users := viperUsers(lawfulFiles); !slices.Equal(users, []string{"cmd/dma-copy/config.go"}) {
		t.Errorf("users of viper: %q", users)
	}
}

func TestLawRejectsUnlawfulFiles(t *testing.T) {
	for _, rule := range arrowRules {
		if len(unlawfulFiles[rule.name]) == 0 {
			t.Errorf("no file breaks %q", rule.name)
		}
	}
	for broken, files := range unlawfulFiles {
		for _, file := range files {
			if got := rulesBrokenBy(file); !slices.Equal(got, []string{broken}) {
				t.Errorf("%s with imports %q breaks %q, want %q alone", file.path, file.imports, got, broken)
			}
		}
	}
}

func rulesBrokenBy(file goFile) (names []string) {
	for _, rule := range arrowRules {
		if len(judge(rule, []goFile{file})) > 0 {
			names = append(names, rule.name)
		}
	}
	return names
}

func TestGoFileIsRead(t *testing.T) {
	file := readGoFile(t, "cmd/dma-copy/stop.go", `package main
		import system "os"
		import "github.com/rs/zerolog"
		func stop(l zerolog.Logger) { go func() { system.Exit(1) }() }`)
	if want := []string{"os", "github.com/rs/zerolog"}; !slices.Equal(file.imports, want) {
		t.Errorf("imports %q, want %q", file.imports, want)
	}
	if !file.exits || !file.startsGoroutine || file.test {
		t.Errorf("read %+v, want one that exits, starts a goroutine and is no test", file)
	}
}

func TestHarmlessGoFileIsRead(t *testing.T) {
	file := readGoFile(t, "internal/comch/exit_test.go", `package comch
		type door struct{ Exit func(int) }
		func leave(os door) { os.Exit(1) }`)
	if file.exits || file.startsGoroutine || !file.test {
		t.Errorf("read %+v, want a test that neither exits nor starts a goroutine", file)
	}
}
