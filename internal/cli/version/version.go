// Package version prints versions, and the driver that a copy would use.
package version

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/connect"
	"github.com/dma-copy/dma-copy/internal/inventory"
	"github.com/dma-copy/dma-copy/internal/release"
)

// Settings holds the settings of version.
type Settings struct {
	option.Logging
	Driver device.Driver
	Output option.OutputForm
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return append(device.CommonOptions(&s.Logging, &s.Driver),
		option.Output(&s.Output, "Output format; JSON names are stable, and new ones may be added"))
}

// Command returns the command version.
func Command() root.Command {
	var s Settings
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
			about := inventory.VersionsOf(release.Version(), s.Driver.LibraryDir)
			if s.Driver.Name == string(connect.DriverUCX) {
				about.UCX = inventory.FindUCX()
			} else {
				about.Driver = inventory.FindDriver(s.Driver.Options())
			}
			return output.Print(streams.Stdout, s.Output, "version", about, textOf(about))
		},
	}
}

// Print prints what --version does.
func Print(w io.Writer, libraryDir string, form option.OutputForm) error {
	about := inventory.VersionsOf(release.Version(), libraryDir)
	return output.Print(w, form, "version", about, textOf(about))
}

// textOf returns the versions as lines of text.
func textOf(v inventory.Versions) string {
	text := fmt.Sprintf("dma-copy %s (%s %s/%s)\nDOCA runtime: %s\n", v.Program, v.Go, v.System, v.Machine,
		cmp.Or(v.DOCA, "not found"))
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
