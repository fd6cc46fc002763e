package main

import (
	"cmp"
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

// notFound stands for the version of DOCA's libraries where there are none.
const notFound = "not found"

// writeVersion prints the version of the program, and that of the DOCA libraries in a directory, or anywhere if it is
// empty.
func writeVersion(w io.Writer, libraryDir string) error {
	runtimeVersion := notFound
	if found, err := doca.FindInstallation(libraryDir); err == nil {
		runtimeVersion = quote.Printable(found.Version)
	}
	return printVersion(w, programLines(programVersion(), runtimeVersion))
}

func programLines(program, docaRuntime string) string {
	return fmt.Sprintf("dma-copy %s (%s %s/%s)\nDOCA runtime: %s\n",
		program, runtime.Version(), runtime.GOOS, runtime.GOARCH, docaRuntime)
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
			about := versionsOf(s.Driver)
			if s.Output == config.OutputJSON {
				return writeJSON(streams.stdout, "version", about)
			}
			return about.write(streams.stdout)
		},
	}
}

// versions is the output of version, described by docs/version.schema.json. Fields are only ever added. Having no
// driver is an answer, not an error.
type versions struct {
	Version int         `json:"v"`
	Program string      `json:"version"`
	Go      string      `json:"go"`
	System  string      `json:"os"`
	Machine string      `json:"arch"`
	DOCA    string      `json:"doca_runtime,omitempty"` // left out where none is found
	UCX     *ucxVersion `json:"ucx,omitempty"`          // with --driver ucx
	Driver  *driverUsed `json:"driver,omitempty"`       // with any other
}

// ucxVersion is the release of UCX, or why there is none.
type ucxVersion struct {
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// driverUsed is the driver that a copy would use and why, or why there is none.
type driverUsed struct {
	Name     string `json:"name,omitempty"`
	Hardware bool   `json:"hardware"`
	Version  string `json:"version,omitempty"`
	Reason   string `json:"reason"`
}

// versionsVersion changes only if a field of versions is removed or changes its meaning.
const versionsVersion = 1

func versionsOf(s config.Driver) versions {
	about := versions{
		Version: versionsVersion, Program: programVersion(), Go: runtime.Version(), System: runtime.GOOS,
		Machine: runtime.GOARCH,
	}
	if found, err := doca.FindInstallation(s.LibraryDir); err == nil {
		about.DOCA = quote.Printable(found.Version)
	}
	if s.Name == config.DriverUCX {
		about.UCX = findUCX()
		return about
	}
	about.Driver = findDriver(s.Options())
	return about
}

func findUCX() *ucxVersion {
	found, err := inventory.TakeNetwork()
	if err != nil {
		return &ucxVersion{Reason: quote.Printable(err.Error())}
	}
	return &ucxVersion{Version: found.UCX}
}

func findDriver(options doca.Options) *driverUsed {
	var used driverUsed
	err := inventory.Look(options, func(driver *doca.Driver) error {
		used = driverUsed{string(driver.Name()), driver.Hardware(), driver.Version(), driver.Reason()}
		return nil
	})
	if err != nil {
		used = driverUsed{Reason: err.Error()}
	}
	used.Reason = quote.Printable(used.Reason)
	return &used
}

// write prints the versions as text.
func (v versions) write(w io.Writer) error {
	text := programLines(v.Program, cmp.Or(v.DOCA, notFound))
	if v.UCX != nil {
		text += fmt.Sprintf("UCX runtime: %s\n", cmp.Or(v.UCX.Version, "none"))
		if v.UCX.Reason != "" {
			text += fmt.Sprintf("reason: %s\n", v.UCX.Reason)
		}
	} else {
		title := "none"
		if v.Driver.Name != "" {
			title = inventory.DriverTitle(v.Driver.Name, v.Driver.Hardware, v.Driver.Version)
		}
		text += fmt.Sprintf("driver: %s\nreason: %s\n", title, v.Driver.Reason)
	}
	return printVersion(w, text)
}

func printVersion(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	return nil
}
