package job

import (
	"strings"

	"github.com/dma-copy/dma-copy/internal/negotiate/native"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// PathChoice is which data paths the user permits.
type PathChoice uint8

// The choices; single paths are in the order of package negotiate. OnlyDMA and OnlyFast are for a device, the others
// for a network connection.
const (
	AnyPath      PathChoice = iota // the best that both sides can use, and that need not be asked for
	OnlyDMA                        // the DPU's DMA engine copies
	OnlyFast                       // Comch producers and consumers
	OnlyTLS                        // TLS connections, which encrypt
	OnlyMessages                   // UCX active messages
	OnlyRMA                        // UCX remote memory access
	OnlyTCP                        // connections that TLS authenticates and does not encrypt
)

// Only returns the choice of one path.
func Only(path wire.Path) PathChoice { return OnlyDMA + PathChoice(path-wire.PathDMA) }

// Permits reports whether the choice permits a path.
func (c PathChoice) Permits(path wire.Path) bool { return c == AnyPath || c == Only(path) }

// Paths is a set of data paths: those that a side can and will use. The zero value is none.
type Paths uint8

// EveryPath is for a side that only reports why it cannot start: no plan of its peer fails for the lack of a path.
const EveryPath Paths = 1<<(wire.PathTCP+1) - 1

// PathsOf returns the set of these paths.
func PathsOf(paths ...wire.Path) Paths {
	var all Paths
	for _, p := range paths {
		all |= 1 << p
	}
	return all
}

// pathFlags is the only table of the flags by which a side says in its HELLO that it can use a path. For PathDMA there
// is native.FlagNoDMA.
var pathFlags = map[wire.Path]native.Flags{
	wire.PathFast: native.FlagFast, wire.PathTLS: native.FlagTLS,
	wire.PathMessages: native.FlagMessages, wire.PathRMA: native.FlagRMA,
	wire.PathTCP: native.FlagTCP,
}

// Flags returns the flags of a HELLO that stand for the set.
func (p Paths) Flags() (flags native.Flags) {
	if !p.Has(wire.PathDMA) {
		flags = native.FlagNoDMA
	}
	for path, flag := range pathFlags {
		if p.Has(path) {
			flags |= flag
		}
	}
	return flags
}

// PathsIn returns the set that the flags of a HELLO stand for.
func PathsIn(flags native.Flags) (p Paths) {
	if !flags.Has(native.FlagNoDMA) {
		p = PathsOf(wire.PathDMA)
	}
	for path, flag := range pathFlags {
		if flags.Has(flag) {
			p |= PathsOf(path)
		}
	}
	return p
}

// Has reports whether the path is in the set.
func (p Paths) Has(path wire.Path) bool { return p&(1<<path) != 0 }

// String returns the names of the paths for a log, separated by commas.
func (p Paths) String() string {
	var names []string
	for path := wire.Path(0); path <= wire.PathTCP; path++ {
		if p.Has(path) {
			names = append(names, path.String())
		}
	}
	return strings.Join(names, ",")
}

// Without returns the set without a path.
func (p Paths) Without(path wire.Path) Paths { return p &^ (1 << path) }

// Intersect returns the paths that are in both sets.
func (p Paths) Intersect(other Paths) Paths { return p & other }

// alternatives is the only table of the paths whose window may turn out not to be within reach, and of those that serve
// instead.
var alternatives = map[wire.Path]Paths{
	wire.PathDMA: PathsOf(wire.PathFast),
	wire.PathRMA: PathsOf(wire.PathTLS, wire.PathTCP, wire.PathMessages),
}

// Alternatives returns the paths of the set that serve instead of path, if its window is not within reach.
func (p Paths) Alternatives(path wire.Path) Paths { return p.Intersect(alternatives[path]) }

// MayFallBack returns the path of the set whose window may turn out not to be within reach, and reports whether there
// is one and another path serves instead.
func (p Paths) MayFallBack() (wire.Path, bool) {
	for path := range alternatives {
		if p.Has(path) && p.Alternatives(path) != 0 {
			return path, true
		}
	}
	return 0, false
}
