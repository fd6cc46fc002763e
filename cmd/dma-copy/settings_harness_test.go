package main

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/native/role"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/placement"
)

// loaded is the result of loading the settings of a copy.
type loaded struct {
	settings copying.Settings
	err      error
}

// loadCopy loads the settings of a copy, with these variables as the whole environment, and checks them.
func loadCopy(variables map[string]string, args ...string) (got loaded) {
	got.err = load(&got.settings, variables, args...)
	if got.err == nil {
		got.err = got.settings.Validate()
	}
	return got
}

// load parses a command line and fills in the settings of any command.
func load(s option.Settings, variables map[string]string, args ...string) error {
	flags := pflag.NewFlagSet("dma-copy", pflag.ContinueOnError)
	option.Declare(flags, s)
	if err := flags.Parse(every().JoinBare(args)); err != nil {
		return every().ExplainFlagError("dma-copy", flags, err)
	}
	_, err := every().Load(flags, func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}, s)
	return err
}

// mustLoad returns the settings of a copy, which must be accepted.
func mustLoad(t *testing.T, variables map[string]string, args ...string) copying.Settings {
	t.Helper()
	got := loadCopy(variables, args...)
	if got.err != nil {
		t.Fatalf("%q: %v", args, got.err)
	}
	return got.settings
}

// mustRefuse expects a usage error with exactly this sentence.
func mustRefuse(t *testing.T, got loaded, sentence string) {
	t.Helper()
	if got.err == nil {
		t.Fatalf("accepted; want the error %q", sentence)
	}
	if got.err.Error() != sentence {
		t.Errorf("error\n %s\nwant\n %s", got.err, sentence)
	}
	if failed, is := errors.AsType[exit.Coder](got.err); !is || failed.ExitCode() != exit.Usage {
		t.Errorf("%v: not a usage error", got.err)
	}
}

// defaults returns the settings of `dma-copy -f x`, with changes.
func defaults(changes ...func(*copying.Settings)) copying.Settings {
	s := copying.Settings{
		File: "x",
		Reach: device.Reach{Role: "auto", Driver: device.Driver{Name: "auto", LogLevel: 40}, Wait: 30e9,
			IdleTimeout: 30e9},
		Logging: option.Logging{LogLevel: 40, LogFormat: "auto"},
		Form:    output.Form{Progress: "auto", Output: "text", Events: "failures"}, Path: "auto", AutoDigest: true,
		Options: dmaxfer.Options{
			Options: role.Options{Digest: digest.CRC32C, Durability: wire.DurabilityFull, MaxHoles: 256 << 30},
		},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// wishFor returns the wish of --numa and --cores, the latter not given if empty.
func wishFor(node, cores string) placement.Wish {
	var wish placement.Wish
	wish.Node, _ = placement.ParseNode(node)
	wish.Cores, _ = placement.ParseList(cores)
	return wish
}
