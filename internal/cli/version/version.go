// Package version prints versions, and the driver that a copy would use.
package version

import (
	"context"
	"io"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
)

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
			about := inventory.VersionsOf(s.Driver.LibraryDir)
			if s.Driver.Name == device.DriverUCX {
				about.UCX = inventory.FindUCX()
			} else {
				about.Driver = inventory.FindDriver(s.Driver.Options())
			}
			return about.Print(streams.Stdout, s.Output)
		},
	}
}

// Print prints what --version does.
func Print(w io.Writer, libraryDir string, form option.OutputForm) error {
	return inventory.VersionsOf(libraryDir).Print(w, form)
}
