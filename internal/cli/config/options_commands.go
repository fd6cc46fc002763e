package config

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/copying"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Table implements Settings.
func (s *Devices) Table() []option.Option {
	return append(device.CommonOptions(&s.Logging, &s.Driver),
		option.Output(&s.Output, "Output format; JSON names are stable, and new ones may be added"))
}

// Table implements Settings.
func (s *Doctor) Table() []option.Option {
	return slices.Concat(
		device.CommonOptions(&s.Logging, &s.Driver),
		[]option.Option{device.Option(&s.Device), device.Representor(&s.Representor)},
		device.PlacementOptions(&s.Placement),
		[]option.Option{option.Switch(option.AddedFlags, "peer", &s.Peer,
			"Also check for the peer of -p's device, on the software device only: on hardware that would use up the "+
				"peer's waiting session. With --probe on both sides, also try what needs both"),
			option.Switch(option.AddedFlags, "probe", &s.Probe,
				"Also try on the device each thing that this program assumes of it; writes nothing but its own memory"),
			option.Duration(option.AddedFlags, "wait", &s.Wait, "30s", option.ParsePositiveDuration,
				"With --probe and --peer: timeout for the other side to run the same command")},
		s.Network.Table(),
		[]option.Option{
			device.IdleTimeout(&s.IdleTimeout,
				"ucx: timeout of copies without progress, from which acknowledgements are derived"),
			option.Directory(option.AddedFlags, "keys", &s.Keys,
				"With --listen or ucx: directory of the keys to check"),
			contact.ListenOption(&s.Listen,
				"Check that a daemon could listen there; without -p and -r no device is checked then"),
			option.Output(&s.Output, "Findings as text, or as one JSON object, on stdout"),
			option.Quiet(&s.Quiet, "Print findings with FAIL only"),
		},
	)
}

// Table implements Settings.
func (s *Ping) Table() []option.Option {
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), s.Reach.Table(), []option.Option{
		option.Text(option.AddedFlags, "text", "TEXT", &s.Text, parseText,
			"Text that the other side prints, at most 1024 bytes"),
		option.Count(option.AddedFlags, "count", &s.Count, "100", 1, service.MaxPings,
			"Round trips of this side, 1 to 1000000; the other side has its own"),
		{Group: option.AddedFlags, Name: "size", Value: "SIZE", Default: "64", JSON: option.JSONNumber,
			Assign: option.Into(&s.Size, parsePingSize),
			Help: "Bytes in each of them, compared when they are back; limited by the device's messages or, on the " +
				"fast path, by its buffers and to 4MiB"},
		device.PathOption(option.AddedFlags, &s.Path,
			"fast: over Comch producers and consumers, else over the control channel. auto is fast if the other side "+
				"wants it, dma and a daemon never", device.DevicePaths),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
		option.Quiet(&s.Quiet, "Print errors only, unless -o json is given"),
		s.Network.TrafficClassOption(),
	}, s.Contact.Table())
}

// Table implements Settings.
func (s *Bench) Table() []option.Option {
	lists := func(name, value, fallback string, assign func(string) error, help string) option.Option {
		return option.Option{
			Group: option.AddedFlags, Name: name, Value: value, Default: fallback, JSON: option.JSONText,
			Assign: assign, Help: help,
		}
	}
	return slices.Concat(device.CommonOptions(&s.Logging, &s.Driver), s.Reach.Table(), []option.Option{
		lists("chunks", "SIZE,...", "64KiB,256KiB,1MiB,2MiB", option.Into(&s.Chunks, option.ParseList(parseChunk)),
			"Bytes per DMA task, rounded down to a power of two"),
		lists("depths", "COUNT,...", "1,4,16,32", option.Into(&s.Depths,
			option.ParseList(option.ParseCount(1, wire.MaxDepth))),
			"Chunks in flight"),
		lists("lane-counts", "COUNT,...", "1,2", option.Into(&s.Lanes,
			option.ParseList(option.ParseCount(1, copying.MostLanes))),
			"Engines of each side, at most one for each chunk in flight"),
		option.Duration(option.AddedFlags, "each", &s.Each, "200ms", parseMeasurement,
			"Time of one measurement, at most 5s; there are about a hundred by default"),
		device.PathOption(option.AddedFlags, &s.Path,
			"Measure this path only; auto is dma and fast over a device, and tls to another machine",
			device.EveryPath()),
		{Group: option.AddedFlags, Name: "file", Short: "f", Value: "FILE", Offers: option.FileValues, FlagOnly: true,
			JSON: option.JSONNone, Assign: option.Into(&s.File, option.ParsePath),
			Help: "Also copy FILE as push would; needs a directory on the other side: -f DIR of its bench, or that " +
				"in PEER, such as :inbox/"},
		option.File(option.AddedFlags, "plot", "FILE", &s.Plot, "Write a drawing of the results, as SVG"),
		option.Output(&s.Output, "Results as text, or as one JSON object, on stdout"),
		option.Quiet(&s.Quiet, "Print errors only, unless -o json is given"),
		s.Network.TrafficClassOption(),
	}, s.Contact.Table())
}

// parseChunk accepts the sizes that a chunk can have.
func parseChunk(text string) (int64, error) {
	size, err := option.ParseSize(text)
	if err == nil && (size < wire.MinChunk || size > wire.MaxChunk) {
		return 0, fmt.Errorf("not a chunk; give 4KiB to 1GiB")
	}
	return size, err
}

// Table implements Settings.
func (s *Config) Table() []option.Option {
	return append(s.LogOptions(),
		option.ParameterFile(),
		option.Output(&s.Output, "Output format, in front of the arguments"),
	)
}

// Table implements Settings.
func (s *Version) Table() []option.Option {
	return append(device.CommonOptions(&s.Logging, &s.Driver),
		option.Output(&s.Output, "Output format; JSON names are stable, and new ones may be added"))
}

// Table implements Settings.
func (s *Verify) Table() []option.Option {
	return slices.Concat(s.LogOptions(), []option.Option{
		option.ParameterFile(),
		{Group: option.AddedFlags, Name: "digest", Value: "ALGORITHM", Default: digest.XXH3.String(),
			JSON:   option.JSONText,
			Assign: option.Into(&s.Digest, parseDigest), Words: realDigests(),
			Help: "crc32c, xxh3, blake3 or sha256, for FILE COPY and --write. xxh3 is fast on host and DPU; it " +
				"detects corruption, the last two tampering too"},
		option.File(option.AddedFlags, "check", "MANIFEST", &s.Manifest, "Check the named files against this manifest"),
		option.File(option.AddedFlags, "write", "MANIFEST", &s.NewManifest, "Write a manifest; - is stdout"),
		option.Directory(option.AddedFlags, "relative-to", &s.RelativeTo,
			"With --write: list paths relative to DIR, not to the directory of the manifest"),
		option.Switch(option.AddedFlags, "extra", &s.Extra,
			"Also fail for each file of the directory that the manifest does not list"),
		option.Switch(option.AddedFlags, "allow-outside", &s.AllowOutside,
			"Follow a manifest's entries out of the directory: absolute paths, .. and symlinks that point out of it"),
		option.Switch(option.AddedFlags, "overwrite", &s.Overwrite, "Let --write replace an existing manifest"),
		option.Output(&s.Output, "Results as text, or as JSON lines, on stdout"),
		option.Quiet(&s.Quiet, "Print failures only"),
	})
}

// parseDigest refuses none, with which every file would match.
func parseDigest(text string) (digest.Algorithm, error) {
	a, err := digest.ParseAlgorithm(text)
	if err != nil || a == digest.None {
		return digest.None, fmt.Errorf("not a digest; give %s", phrase.Or(realDigests()))
	}
	return a, nil
}

// realDigests returns the names of all digests but none.
func realDigests() []string { return digest.Names()[1:] }

// Status holds the settings of status.
type Status struct {
	option.Logging
	Output     option.OutputForm
	Socket     string // empty: the default one
	RuntimeDir string // of the daemon; empty: the default one
}

// Table implements Settings.
func (s *Status) Table() []option.Option {
	return append(s.LogOptions(),
		option.ParameterFile(),
		option.File(option.AddedFlags, "socket", "PATH", &s.Socket,
			"Socket of the daemon; default status.sock in its runtime directory"),
		option.Directory(option.ServeFlags, "runtime-dir", &s.RuntimeDir,
			"Runtime directory of the daemon; default that of this user, then /run/dma-copy"),
		option.Output(&s.Output, "Result as text, or as one JSON line, on stdout"),
	)
}
