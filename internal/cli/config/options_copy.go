package config

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// sides is how the help speaks of a copy.
type sides bool

const (
	twoCommands sides = false // each side has one, and its options are about this side
	oneCommand  sides = true
)

// help returns one of two texts.
func (s sides) help(ofThisSide, ofTheCopy string) string {
	if s == oneCommand {
		return ofTheCopy
	}
	return ofThisSide
}

// Table implements Settings.
func (s *Copy) Table() []option.Option {
	return slices.Concat(
		generalOptions(&s.Logging, &s.Driver),
		s.engineOptions(),
		s.peerOptions(pathOption(option.NativeFlags, &s.Path,
			"How file data is copied: by DMA, or over Comch producers and consumers (fast); auto is dma if both "+
				"sides support it", devicePaths)),
		[]option.Option{
			{Group: option.ProgramFlags, Name: "file", Short: "f", Value: "FILE", Offers: option.FileValues,
				JSON:   option.JSONText,
				Assign: option.Into(&s.File, parseFile),
				Help: "File or directory to send, or to create; mandatory; - is stdin, or stdout if the other side " +
					"has a file"},
			option.Either(option.AddedFlags, "protocol", &s.Options.ReferenceOnly, "auto", "reference",
				"reference forces NVIDIA's protocol, auto prefers the native one"),
			option.Text(option.NativeFlags, "with", "WORD", &s.With, parseWord,
				"Copy only with a side that was given the same WORD, and not with somebody else's"),
		},
		s.demandOptions(), s.commandOptions(twoCommands), s.existingOptions(twoCommands),
		[]option.Option{
			{Group: option.AddedFlags, Name: "cpuprofile", Value: "FILE", Offers: option.FileValues,
				JSON: option.JSONText, Hidden: true,
				Assign: option.Into(&s.CPUProfile, option.ParsePath),
				Help:   "Write a profile of this side for go tool pprof"},
		})
}

// MostLanes is how many lanes a side may be given: each has memory of its own.
const MostLanes = 16

// engineOptions are about what copies on this side.
func (s *Copy) engineOptions() []option.Option {
	o := &s.Options
	return slices.Concat(driverOptions(&s.Driver), []option.Option{deviceOption(&s.Device)},
		placementOptions(&s.Placement),
		[]option.Option{
			option.Size(option.AddedFlags, "chunk", &o.Chunk, "0",
				"Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to the K); 0 is automatic. Between two "+
					"dma-copy the smaller of both sides, rounded down to a power of two (minimum 4KiB)"),
			option.Count(option.AddedFlags, "depth", &o.Depth, "0", 0, option.MaxCount,
				"DMA tasks in flight; 0 is automatic. Between two dma-copy the smaller of both sides"),
			option.Count(option.AddedFlags, "lanes", &o.Lanes, "0", 0, MostLanes,
				"Goroutines of this side that move chunks, each with a DMA engine where there is one; 0 is automatic"),
		})
}

// peerOptions are about the other side.
func (s *Copy) peerOptions(path option.Option) []option.Option {
	o := &s.Options
	return []option.Option{
		representorOption(&s.Representor),
		roleOption(&s.Role),
		path,
		waitOption(&s.Wait),
		option.Duration(option.AddedFlags, "max-duration", &o.MaxDuration, "0", option.ParseLimit,
			"Timeout for the copy of each source, from when both sides are connected; 0 is none"),
	}
}

// demandOptions are what a side demands of every copy.
func (s *Copy) demandOptions() []option.Option {
	o := &s.Options
	return []option.Option{
		option.Size(option.AddedFlags, "max-bytes", &o.MaxBytes, "0", "Refuse a larger file or tree; 0 is no limit"),
		option.Size(option.AddedFlags, "max-holes", &o.MaxHoles, "256GiB",
			"Refuse a file with more holes, which take as long as data with a digest other than crc32c or with a "+
				"readback; 0 is no limit"),
		maxEntriesOption(&o.MaxEntries, "Refuse a tree with more entries; 0 is no limit"),
		idleTimeoutOption(&s.IdleTimeout, idleTimeoutHelp),
		{Group: option.NativeFlags, Name: "digest", Default: digestAuto, JSON: option.JSONText, Assign: s.assignDigest,
			Words: digestChoices(),
			Help: "Digest that both sides compare; the stronger choice of both sides is used. auto is crc32c, with " +
				"keys blake3"},
		option.Either(option.NativeFlags, "verify", &o.Readback, "digest", "readback",
			"readback: also read the written file back from its disk before the final rename"),
		{Group: option.NativeFlags, Name: "durability", Default: wire.DurabilityFull.String(),
			JSON:   option.JSONText,
			Assign: option.Into(&o.Durability, option.ParseRank[wire.Durability](durabilities()...)),
			Words:  durabilities(),
			Help: "What to flush (fsync) before success: nothing, the file, its directory too; the stronger choice " +
				"of both sides is used"},
		option.Either(option.NativeFlags, "sparse", &o.NoSparse, "auto", "never", "never: fill holes with zeros"),
	}
}

// filterList is the list to which --include, --exclude and --exclude-from append: their order matters.
const filterList = "filters"

// commandOptions are those of every command that copies.
func (s *Copy) commandOptions(of sides) []option.Option {
	o := &s.Options
	return []option.Option{
		timeoutOption(&s.Timeout),
		option.Switch(option.AddedFlags, "backup", &o.Backup, "Keep a file that is replaced as FILE~"),
		option.Output(&s.Output, "Report as text on stderr, or as JSON lines on stdout (on stderr if a file is -)"),
		option.Choice(option.AddedFlags, "progress", &s.Progress, output.ProgressAuto,
			"auto is a bar on a terminal, else a line every 10s; always a line every second, even if quiet",
			output.ProgressAuto, output.ProgressNever, output.ProgressAlways),
		option.Choice(option.AddedFlags, "events", &s.Events, output.EventsFailures,
			"With -o json: entries of a tree with an event",
			output.EventsAll, output.EventsFailures),
		option.Quiet(&s.Quiet, "Print errors only: no summary, no progress, and unless -l is given no warnings"),
		bandwidthOption(&o.Bandwidth, "Bandwidth limit in bytes per second, such as 100MiB; 0 is no limit"),
		{Group: option.NativeFlags, Name: "expect", Value: "ALGORITHM:HEX", JSON: option.JSONText,
			Words:  digestPrefixes(),
			Assign: option.Into(&o.Expect, parseExpected), Excludes: []string{"files-from"},
			Help: "Expected digest of a file, such as crc32c:1f0e22c4, else fail; implies its --digest"},
		option.Switch(option.NativeFlags, "allow-changing", &o.AllowChanging, of.help(
			"Sender: the file may change during the copy; its size at the start is sent",
			"The source may change during the copy; its size at the start is copied")),
		{Group: option.NativeFlags, Name: "preserve", Value: "owner,xattr,links", JSON: option.JSONText,
			Assign: s.assignPreserved, Words: preservable, Several: true,
			Help: of.help("Preserve them too, if set on both sides", "Preserve them too, if a daemon permits it") +
				"; mode and modification time are always preserved; links: hard links between the files of a tree"},
		option.Switch(option.NativeFlags, "no-resume", &o.NoResume, of.help(
			"Receiver: neither resume an earlier copy, nor keep a partial file on failure",
			"Neither resume an earlier copy, nor keep a partial file on failure")),
		{Group: option.NativeFlags, Name: "include", Value: "PATTERN", JSON: option.JSONList, List: filterList,
			Assign: option.Appending(&s.Filters, parseRule(FilterInclude, parsePattern)),
			Help: of.help("Sender of a tree: send", "Copy") +
				" what matches a pattern as in .gitignore. Of all --include, --exclude and --exclude-from the first " +
				"that matches wins"},
		{Group: option.NativeFlags, Name: "exclude", Value: "PATTERN", JSON: option.JSONList, List: filterList,
			Assign: option.Appending(&s.Filters, parseRule(FilterExclude, parsePattern)),
			Help:   of.help("Sender of a tree: do not send", "Do not copy") + " what matches"},
		{Group: option.NativeFlags, Name: "exclude-from", Value: "FILE", Offers: option.FileValues,
			JSON: option.JSONList, List: filterList,
			Assign: option.Appending(&s.Filters, parseRule(FilterExcludeFrom, option.ParsePath)),
			Help:   "The same for the patterns in a file such as .gitignore; all three may be repeated"},
		option.File(option.NativeFlags, "files-from", "FILE", &s.FilesFrom, of.help("Sender of a tree: send", "Copy")+
			" the paths in FILE only, one per line, relative to the tree; - is stdin"),
		option.WithLetter("0", option.Switch(option.NativeFlags, "null", &s.Null,
			"Paths in --files-from end with NUL bytes")),
		{Group: option.NativeFlags, Name: "links", Default: linkChoices[tree.LinksCopy], JSON: option.JSONText,
			Assign: option.Into(&o.Links, option.ParseRank[tree.LinkMode](linkChoices...)), Words: linkChoices,
			Help: of.help("Sender: symlinks", "Symlinks") +
				" in a tree as symlinks, as what they point to inside of it, or not at all"},
		option.Switch(option.NativeFlags, "checksum", &o.Checksum,
			"Compare what the target has already by digest, not by size and modification time"),
		option.Switch(option.NativeFlags, "dry-run", &s.DryRun, "Print what would be done and change nothing"),
		option.Switch(option.NativeFlags, "fail-fast", &o.FailFast,
			"Stop at the first source, or entry of a tree, that fails"),
	}
}

// existingOptions are about a target that exists, for commands that do not always replace it.
func (s *Copy) existingOptions(of sides) []option.Option {
	o := &s.Options
	return []option.Option{
		option.Switch(option.AddedFlags, "overwrite", &o.Overwrite,
			of.help("Receive here, replacing FILE if it exists, or the files in it that differ; required on one side "+
				"if both have FILE and differ",
				"Replace the target if it exists, or the files in it that differ")),
		option.Switch(option.NativeFlags, "ignore-existing", &o.IgnoreExisting, of.help(
			"Receive here, adding what is missing in FILE and leaving what exists as it is",
			"Leave the target as it is if it exists, and the files that exist in it")),
		option.Either(option.NativeFlags, "if-same", &o.RefuseSame, "skip", "error",
			"If the target is the same already: succeed, or fail as for files that differ"),
	}
}

// Table implements Settings. A local copy has no other side, and names what it copies in its arguments.
func (s *Local) Table() []option.Option {
	return slices.Concat(generalOptions(&s.Logging, &s.Driver), s.engineOptions(), s.demandOptions(),
		s.commandOptions(oneCommand), s.existingOptions(oneCommand),
		[]option.Option{makePathOption(&s.Options.MakePath)})
}
