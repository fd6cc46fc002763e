package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/root"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Command returns the command verify.
func Command() root.Command {
	var s Settings
	return root.Command{
		Name:    "verify",
		Summary: "Compare files by digest, read from disk",
		Takes:   []string{"FILE COPY", "[DIR] MANIFEST", "--check MANIFEST PATH...", "--write MANIFEST PATH..."},
		About: `Reads files from disk, bypassing the page cache where possible, and reports
whether their content is as expected. Needs no device.
`,
		List: []option.Row{
			{Term: "FILE COPY", Text: "compares two files, byte by byte as well"},
			{Term: "MANIFEST", Text: "checks each file it lists, relative to its directory"},
			{Term: "DIR MANIFEST", Text: "the same, relative to DIR: a tree against its copy"},
			{Term: "--check MANIFEST DIR", Text: "the same"},
			{Term: "--check MANIFEST FILE", Text: "checks these files only, which it may list by another directory " +
				"if the names are the same"},
			{Term: "--write MANIFEST PATH", Text: "lists files, and all files below directories, sorted; symlinks " +
				"are left out"},
		},
		Notes: `A manifest has lines of ALGORITHM:HEX  PATH, or is the output of sha256sum.
Each file is one line on stdout, ok or FAIL. The exit code is 0 if all are ok, 9
on a mismatch, 4 if a file cannot be read, 12 if only some of several failed.
Anything but a regular file on a disk (a FIFO, a device, /proc) is not read.
`,
		Examples: `host$ dma-copy verify image.bin copy.bin
host$ dma-copy verify --write photos.sums --relative-to photos photos
dpu$  dma-copy verify --extra /var/tmp/photos photos.sums
dpu$  dma-copy verify --check photos.sums /var/tmp/photos/1.jpg
`,
		Complete: root.AnyFiles,
		Settings: &s,
		Run: func(ctx context.Context, streams root.Streams, args []string, log zerolog.Logger) error {
			asked := root.ProgressRequests(ctx)
			return concludeVerify(streams, s, Run(ctx, streams.Stdout, streams.Stderr, s, args, asked, log))
		},
		Refused: func(streams root.Streams, err error) error { return concludeVerify(streams, s, err) },
	}
}

// concludeVerify ends the JSON lines of a run that has ended with err, and returns the error of the run.
func concludeVerify(streams root.Streams, s Settings, err error) error {
	if s.Output != option.OutputJSON {
		return err
	}
	message := ""
	if err != nil {
		message = report.Sentence(err)
	}
	if unwritten := WriteEnd(streams.Stdout, exit.Code(err), message); unwritten != nil {
		return errors.Join(err, unwritten)
	}
	return err
}

// Settings holds the settings of verify.
type Settings struct {
	option.Logging
	Digest       digest.Algorithm // never digest.None
	Manifest     string           // to check named files against; empty: not given
	NewManifest  string           // to write, "-" to stdout; empty: none
	AllowOutside bool             // follow a manifest's entries out of its directory
	RelativeTo   string           // directory that names in NewManifest are relative to; empty: NewManifest's
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
