// Package release has the version of the program.
package release

import (
	"runtime/debug"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// version is the release, set by the linker (see the Makefile). Without it the build info has it.
var version string

// Version returns the linked release, else the module version that the Go toolchain recorded.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "unknown"
	}
	return info.Main.Version
}

// SoftwareName returns the name and version of this program for peers: printable ASCII of at most
// wire.MaxSoftwareName bytes.
func SoftwareName() string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, "dma-copy "+Version())
	return name[:min(len(name), wire.MaxSoftwareName)]
}
