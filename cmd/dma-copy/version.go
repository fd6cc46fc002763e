package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/config"
	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// version is the release, set by the linker: -ldflags "-X main.version=1.2.3". Without it the build info has it.
var version string

// programVersion returns the linked release, else the module version that the Go toolchain recorded.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

// softwareName returns the name and version of this program for peers: printable ASCII of at most
// negotiate.MaxSoftwareName bytes.
func softwareName() string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, "dma-copy "+programVersion())
	return name[:min(len(name), negotiate.MaxSoftwareName)]
}

// docaRuntimeVersion returns a function that finds the version of the DOCA libraries in a directory, or anywhere if it
// is empty.
func docaRuntimeVersion(libraryDir string) func() string {
	return func() string {
		found, err := doca.FindInstallation(libraryDir)
		if err != nil {
			return "not found"
		}
		return found.Version
	}
}

// writeVersion prints the version of the program, and that of the DOCA libraries which docaRuntime returns.
func writeVersion(w io.Writer, docaRuntime func() string) error {
	_, err := fmt.Fprintf(w, "dma-copy %s (%s %s/%s)\nDOCA runtime: %s\n",
		programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH, docaRuntime())
	if err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	return nil
}

func versionCommand() command {
	var s config.Version
	return command{
		name:    "version",
		summary: "Print versions, and the driver a copy would use",
		about: `Prints the version of dma-copy and of DOCA, and which driver a copy would use
here and why. With --driver ucx: the version of UCX, for copies to other
machines.
`,
		examples: `$ dma-copy version
$ dma-copy version --driver doca --doca-libdir /opt/mellanox/doca/lib
$ dma-copy version --driver ucx
`,
		settings: &s,
		run: func(_ context.Context, streams streams, _ []string, _ zerolog.Logger) error {
			if err := writeVersion(streams.stdout, docaRuntimeVersion(s.Driver.LibraryDir)); err != nil {
				return err
			}
			if s.Driver.Name == config.DriverUCX {
				return writeUCX(streams.stdout)
			}
			return writeDriverChoice(streams.stdout, s.Driver.Options())
		},
	}
}

// writeUCX prints the version of UCX. Having none is an answer, not an error.
func writeUCX(w io.Writer) error {
	version, reason := "none", ""
	found, err := inventory.TakeNetwork()
	if err != nil {
		reason = fmt.Sprintf("reason: %s\n", quote.Printable(err.Error()))
	} else {
		version = found.UCX
	}
	if _, err := fmt.Fprintf(w, "UCX runtime: %s\n%s", version, reason); err != nil {
		return fmt.Errorf("print the version of UCX: %w", err)
	}
	return nil
}

// writeDriverChoice prints which driver the options lead to. Having none is an answer, not an error.
func writeDriverChoice(w io.Writer, options doca.Options) error {
	title, reason := "none", ""
	err := inventory.Look(options, func(driver *doca.Driver) error {
		title, reason = inventory.DriverTitle(string(driver.Name()), driver.Hardware(), driver.Version()),
			driver.Reason()
		return nil
	})
	if err != nil {
		reason = err.Error()
	}
	if _, err := fmt.Fprintf(w, "driver: %s\nreason: %s\n", title, quote.Printable(reason)); err != nil {
		return fmt.Errorf("print the driver: %w", err)
	}
	return nil
}
