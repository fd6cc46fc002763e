package verify

import (
	"fmt"
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/phrase"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
)

// Settings holds the settings of verify.
type Settings struct {
	option.Logging
	Digest       digest.Algorithm // never digest.None
	Manifest     string           // to check named files against; empty: not given
	NewManifest  string           // to write, "-" to stdout; empty: none
	AllowOutside bool             // follow a manifest's entries out of its directory
	RelativeTo   string           // directory that names in NewManifest are relative to; empty: that of NewManifest
	Extra        bool             // files that the manifest does not list are failures
	Overwrite    bool             // NewManifest may be replaced
	Quiet        bool             // print failures only
	Output       option.OutputForm
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
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
