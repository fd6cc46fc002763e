package main

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/cmd/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// options implements settings.
func (s *devicesSettings) options() []option {
	return append(commonOptions(&s.LogLevel, &s.Driver), option{
		group: addedOptions, name: "output", short: "o", value: "text|json", fallback: string(outputText), json: jsonText,
		assign: into(&s.Output, parseOneOf(outputText, outputJSON)),
		help:   "Output format; JSON names are stable, and new\nones may be added",
	})
}

// options implements settings.
func (s *doctorSettings) options() []option {
	return slices.Concat(
		commonOptions(&s.LogLevel, &s.Driver),
		[]option{deviceOption(&s.Device), representorOption(&s.Representor)},
		placeOptions(&s.Place),
		[]option{{group: addedOptions, name: "peer", fallback: "false", json: jsonSwitch,
			assign: into(&s.Peer, parseSwitch),
			help: "Also check for the peer of -p's device;\nsoftware device only, since on hardware the\n" +
				"probe would use up the peer's waiting session"}},
	)
}

// options implements settings.
func (s *versionSettings) options() []option { return commonOptions(&s.LogLevel, &s.Driver) }

// options implements settings.
func (s *verifySettings) options() []option {
	return []option{
		logLevelOption(&s.LogLevel),
		jsonOption(),
		{group: addedOptions, name: "digest", value: "ALGORITHM", fallback: digest.XXH3.String(), json: jsonText,
			assign: into(&s.Digest, parseDigest),
			help: "crc32c, xxh3, blake3 or sha256, for FILE COPY\nand --write. xxh3 is fast on host and DPU; it\n" +
				"detects corruption, the last two tampering too"},
		{group: addedOptions, name: "check", value: "MANIFEST", json: jsonText,
			assign: into(&s.Manifest, parsePath),
			help:   "Check the named files against this manifest"},
		{group: addedOptions, name: "write", value: "MANIFEST", json: jsonText,
			assign: into(&s.NewManifest, parsePath),
			help:   "Write a manifest; - is stdout"},
		{group: addedOptions, name: "allow-outside", fallback: "false", json: jsonSwitch,
			assign: into(&s.AllowOutside, parseSwitch),
			help: "Follow a manifest's entries out of the\ndirectory: absolute paths, .. and symlinks\n" +
				"that point out of it"},
		{group: addedOptions, name: "overwrite", fallback: "false", json: jsonSwitch,
			assign: into(&s.Overwrite, parseSwitch),
			help:   "Let --write replace an existing manifest"},
		{group: addedOptions, name: "quiet", fallback: "false", json: jsonSwitch,
			assign: into(&s.Quiet, parseSwitch),
			help:   "Print failures only"},
	}
}

// parseDigest refuses none: it would find every file as it should be.
func parseDigest(text string) (digest.Algorithm, error) {
	a, err := digest.ParseAlgorithm(text)
	if err != nil || a == digest.None {
		return digest.None, fmt.Errorf("not a digest; give %s", phrase.Or(digest.Names()[1:]))
	}
	return a, nil
}
