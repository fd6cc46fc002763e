package config

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// options implements Settings.
func (s *Devices) options() []option {
	return append(commonOptions(&s.Logging, &s.Driver),
		outputOption(&s.Output, "Output format; JSON names are stable, and new ones may be added"))
}

// options implements Settings.
func (s *Doctor) options() []option {
	return slices.Concat(
		commonOptions(&s.Logging, &s.Driver),
		[]option{deviceOption(&s.Device), representorOption(&s.Representor)},
		placementOptions(&s.Placement),
		[]option{switchOption(AddedFlags, "peer", &s.Peer,
			"Also check for the peer of -p's device, on the software device only: on hardware that would use up the "+
				"peer's waiting session. With --probe on both sides, also try what needs both"),
			switchOption(AddedFlags, "probe", &s.Probe,
				"Also try on the device each thing that this program assumes of it; writes nothing but its own memory"),
			durationOption(AddedFlags, "wait", &s.Wait, "30s", parsePositiveDuration,
				"With --probe and --peer: timeout for the other side to run the same command")},
		s.Network.options(),
		[]option{
			idleTimeoutOption(&s.IdleTimeout,
				"ucx: timeout of copies without progress, from which acknowledgements are derived"),
			directoryOption(AddedFlags, "keys", &s.Keys, "With --listen or ucx: directory of the keys to check"),
			listenOption(&s.Listen,
				"Check that a daemon could listen there; without -p and -r no device is checked then"),
			outputOption(&s.Output, "Findings as text, or as one JSON object, on stdout"),
			quietOption(&s.Quiet, "Print findings with FAIL only"),
		},
	)
}

// options implements Settings.
func (s *Ping) options() []option {
	return slices.Concat(commonOptions(&s.Logging, &s.Driver), s.Reach.options(), []option{
		textOption(AddedFlags, "text", "TEXT", &s.Text, parseText,
			"Text that the other side prints, at most 1024 bytes"),
		countOption(AddedFlags, "count", &s.Count, "100", 1, negotiate.MaxPings,
			"Round trips of this side, 1 to 1000000; the other side has its own"),
		{group: AddedFlags, name: "size", value: "SIZE", fallback: "64", json: jsonNumber,
			assign: into(&s.Size, parsePingSize),
			help: "Bytes in each of them, compared when they are back; limited by the device's messages or, on the " +
				"fast path, by its buffers and to 4MiB"},
		pathOption(AddedFlags, &s.Path, "fast: over Comch producers and consumers, else "+
			"over the control channel. auto is fast if the other side wants it, dma and a daemon never", devicePaths),
		outputOption(&s.Output, "Results as text, or as JSON lines, on stdout"),
		quietOption(&s.Quiet, "Print errors only, unless -o json is given"),
		s.Network.trafficClassOption(),
	}, s.Contact.options())
}

// options implements Settings.
func (s *Bench) options() []option {
	lists := func(name, value, fallback string, assign func(string) error, help string) option {
		return option{
			group: AddedFlags, name: name, value: value, fallback: fallback, json: jsonText, assign: assign, help: help,
		}
	}
	return slices.Concat(commonOptions(&s.Logging, &s.Driver), s.Reach.options(), []option{
		lists("chunks", "SIZE,...", "64KiB,256KiB,1MiB,2MiB", into(&s.Chunks, parseList(parseChunk)),
			"Bytes per DMA task, rounded down to a power of two"),
		lists("depths", "COUNT,...", "1,4,16,32", into(&s.Depths, parseList(parseCount(1, negotiate.MaxDepth))),
			"Chunks in flight"),
		lists("lane-counts", "COUNT,...", "1,2", into(&s.Lanes, parseList(parseCount(1, MostLanes))),
			"Engines of each side, at most one for each chunk in flight"),
		durationOption(AddedFlags, "each", &s.Each, "200ms", parseMeasurement,
			"Time of one measurement, at most 5s; there are about a hundred by default"),
		pathOption(AddedFlags, &s.Path, "Measure this path only; auto is dma and fast over a device, and tls to "+
			"another machine", everyPath()),
		{group: AddedFlags, name: "file", short: "f", value: "FILE", offers: FileValues, flagOnly: true,
			json: jsonNone, assign: into(&s.File, parsePath),
			help: "Also copy FILE as push would; needs a directory on the other side: -f DIR of its bench, or that " +
				"in PEER, such as :inbox/"},
		fileOption(AddedFlags, "plot", "FILE", &s.Plot, "Write a drawing of the results, as SVG"),
		outputOption(&s.Output, "Results as text, or as one JSON object, on stdout"),
		quietOption(&s.Quiet, "Print errors only, unless -o json is given"),
		s.Network.trafficClassOption(),
	}, s.Contact.options())
}

// parseChunk accepts the sizes that a chunk can have.
func parseChunk(text string) (int64, error) {
	size, err := parseSize(text)
	if err == nil && (size < negotiate.MinChunk || size > negotiate.MaxChunk) {
		return 0, fmt.Errorf("not a chunk; give 4KiB to 1GiB")
	}
	return size, err
}

// options implements Settings.
func (s *Config) options() []option {
	return append(s.logOptions(),
		jsonOption(),
		outputOption(&s.Output, "Output format, in front of the arguments"),
	)
}

// options implements Settings.
func (s *Version) options() []option {
	return append(commonOptions(&s.Logging, &s.Driver),
		outputOption(&s.Output, "Output format; JSON names are stable, and new ones may be added"))
}

// options implements Settings.
func (s *Verify) options() []option {
	return slices.Concat(s.logOptions(), []option{
		jsonOption(),
		{group: AddedFlags, name: "digest", value: "ALGORITHM", fallback: digest.XXH3.String(), json: jsonText,
			assign: into(&s.Digest, parseDigest), words: realDigests(),
			help: "crc32c, xxh3, blake3 or sha256, for FILE COPY and --write. xxh3 is fast on host and DPU; it " +
				"detects corruption, the last two tampering too"},
		fileOption(AddedFlags, "check", "MANIFEST", &s.Manifest, "Check the named files against this manifest"),
		fileOption(AddedFlags, "write", "MANIFEST", &s.NewManifest, "Write a manifest; - is stdout"),
		directoryOption(AddedFlags, "relative-to", &s.RelativeTo,
			"With --write: list paths relative to DIR, not to the directory of the manifest"),
		switchOption(AddedFlags, "extra", &s.Extra,
			"Also fail for each file of the directory that the manifest does not list"),
		switchOption(AddedFlags, "allow-outside", &s.AllowOutside,
			"Follow a manifest's entries out of the directory: absolute paths, .. and symlinks "+
				"that point out of it"),
		switchOption(AddedFlags, "overwrite", &s.Overwrite, "Let --write replace an existing manifest"),
		outputOption(&s.Output, "Results as text, or as JSON lines, on stdout"),
		quietOption(&s.Quiet, "Print failures only"),
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

// digestPrefixes returns the algorithms of a digest as it begins, such as "crc32c:".
func digestPrefixes() []string {
	prefixes := realDigests()
	for i := range prefixes {
		prefixes[i] += ":"
	}
	return prefixes
}

// Status holds the settings of status.
type Status struct {
	Logging
	Output     OutputForm
	Socket     string // empty: the default one
	RuntimeDir string // of the daemon; empty: the default one
}

// options implements Settings.
func (s *Status) options() []option {
	return append(s.logOptions(),
		jsonOption(),
		fileOption(AddedFlags, "socket", "PATH", &s.Socket,
			"Socket of the daemon; default status.sock in its runtime directory"),
		directoryOption(ServeFlags, "runtime-dir", &s.RuntimeDir, "Runtime directory of the daemon; default that "+
			"of this user, then /run/dma-copy"),
		outputOption(&s.Output, "Result as text, or as one JSON line, on stdout"),
	)
}

// General holds the settings of commands that have no others.
type General struct {
	Logging
}

// options implements Settings.
func (s *General) options() []option { return append(s.logOptions(), jsonOption()) }
