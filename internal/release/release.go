// Package release has the version of the program.
package release

import (
	"runtime/debug"
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// version is the release, set by the linker (see the Makefile). Without it the build info has it.
var version string

// Version returns the linked release, else the version of this module that the Go toolchain recorded: in a program that
// imports the module as well.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unknown
	}
	return versionIn(info)
}

const (
	module  = "github.com/dma-copy/dma-copy"
	unknown = "unknown"
)

func versionIn(info *debug.BuildInfo) string {
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return unknown
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
