package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/config"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/doca"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// notFound stands for the version of DOCA's libraries where there are none.
const notFound = "not found"

func programLines(program, docaRuntime string) string {
	return fmt.Sprintf("dma-copy %s (%s %s/%s)\nDOCA runtime: %s\n",
		program, runtime.Version(), runtime.GOOS, runtime.GOARCH, docaRuntime)
}

func versionCommand() root.Command {
	var s config.Version
	return root.Command{
		Name:    "version",
		Summary: "Print versions, and the driver a copy would use",
		About: `Prints the version of dma-copy and of DOCA, and which driver a copy would use
here and why. With --driver ucx: the version of UCX, for copies to other
machines.
`,
		Examples: `$ dma-copy version
$ dma-copy version --driver doca --doca-libdir /opt/mellanox/doca/lib
$ dma-copy version --driver ucx
`,
		Settings: &s,
		Run: func(_ context.Context, streams root.Streams, _ []string, _ zerolog.Logger) error {
			about := versionsOf(s.Driver.LibraryDir)
			if s.Driver.Name == device.DriverUCX {
				about.UCX = findUCX()
			} else {
				about.Driver = findDriver(s.Driver.Options())
			}
			return about.print(streams.Stdout, s.Output)
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
	DOCA    string      `json:"doca_runtime,omitempty"` // left out where none is found, as is what follows of it
	Files   string      `json:"doca_libraries,omitempty"`
	Caution string      `json:"doca_caution,omitempty"` // of a release that is newer than this program
	UCX     *ucxVersion `json:"ucx,omitempty"`          // with --driver ucx
	Driver  *driverUsed `json:"driver,omitempty"`       // with any other; --version has neither
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

// versionsOf returns the version of the program, and that of the DOCA libraries in a directory, or anywhere if it is
// empty.
func versionsOf(libraryDir string) versions {
	about := versions{
		Version: versionsVersion, Program: root.Version(), Go: runtime.Version(), System: runtime.GOOS,
		Machine: runtime.GOARCH,
	}
	if found, err := doca.FindInstallation(libraryDir); err == nil {
		about.DOCA, about.Caution = quote.Printable(found.Version), quote.Printable(found.Caution)
		about.Files = quote.Printable(inventory.Libraries(found.Directory, found.Files))
	}
	return about
}

// printVersions prints what --version does.
func printVersions(w io.Writer, libraryDir string, form option.OutputForm) error {
	return versionsOf(libraryDir).print(w, form)
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

// print prints the versions as text or JSON.
func (v versions) print(w io.Writer, form option.OutputForm) error {
	if form == option.OutputJSON {
		return output.WriteJSON(w, "version", v)
	}
	if _, err := io.WriteString(w, v.text()); err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	return nil
}

// text returns the versions as lines of text.
func (v versions) text() string {
	text := programLines(v.Program, cmp.Or(v.DOCA, notFound))
	if v.Files != "" {
		text += fmt.Sprintf("libraries: %s\n", v.Files)
	}
	if v.Caution != "" {
		text += fmt.Sprintf("warning: %s\n", v.Caution)
	}
	if v.UCX != nil {
		text += fmt.Sprintf("UCX runtime: %s\n", cmp.Or(v.UCX.Version, "none"))
		if v.UCX.Reason != "" {
			text += fmt.Sprintf("reason: %s\n", v.UCX.Reason)
		}
	}
	if v.Driver != nil {
		title := "none"
		if v.Driver.Name != "" {
			title = inventory.DriverTitle(v.Driver.Name, v.Driver.Hardware, v.Driver.Version)
		}
		text += fmt.Sprintf("driver: %s\nreason: %s\n", title, v.Driver.Reason)
	}
	return text
}
