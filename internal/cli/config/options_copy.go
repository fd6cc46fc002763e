package config

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/negotiate"
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

// options implements Settings.
func (s *Copy) options() []option {
	return slices.Concat(
		generalOptions(&s.Logging, &s.Driver),
		s.engineOptions(),
		s.peerOptions(pathOption(NativeFlags, &s.Path, "How file data is copied: by DMA, or over Comch producers and "+
			"consumers (fast); auto is dma if both sides support it", devicePaths)),
		[]option{
			{group: ProgramFlags, name: "file", short: "f", value: "FILE", offers: FileValues, json: jsonText,
				assign: into(&s.File, parseFile),
				help: "File or directory to send, or to create; mandatory; - is stdin, or stdout if the other side " +
					"has a file"},
			eitherOption(AddedFlags, "protocol", &s.Options.ReferenceOnly, "auto", "reference",
				"reference forces NVIDIA's protocol, auto prefers the native one"),
			textOption(NativeFlags, "with", "WORD", &s.With, parseWord,
				"Copy only with a side that was given the same WORD, and not with somebody else's"),
		},
		s.demandOptions(), s.commandOptions(twoCommands), s.existingOptions(twoCommands),
		[]option{
			{group: AddedFlags, name: "cpuprofile", value: "FILE", offers: FileValues, json: jsonText, hidden: true,
				assign: into(&s.CPUProfile, parsePath),
				help:   "Write a profile of this side for go tool pprof"},
		})
}

// MostLanes is how many lanes a side may be given: each has memory of its own.
const MostLanes = 16

// engineOptions are about what copies on this side.
func (s *Copy) engineOptions() []option {
	o := &s.Options
	return slices.Concat(driverOptions(&s.Driver), []option{deviceOption(&s.Device)}, placementOptions(&s.Placement),
		[]option{
			sizeOption(AddedFlags, "chunk", &o.Chunk, "0", "Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to "+
				"the K); 0 is automatic. Between two dma-copy the smaller of both sides, rounded down to a power of "+
				"two (minimum 4KiB)"),
			countOption(AddedFlags, "depth", &o.Depth, "0", 0, maxCount,
				"DMA tasks in flight; 0 is automatic. Between two dma-copy the smaller of both sides"),
			countOption(AddedFlags, "lanes", &o.Lanes, "0", 0, MostLanes, "Goroutines of this side that move chunks, "+
				"each with a DMA engine where there is one; 0 is automatic"),
		})
}

// peerOptions are about the other side.
func (s *Copy) peerOptions(path option) []option {
	o := &s.Options
	return []option{
		representorOption(&s.Representor),
		roleOption(&s.Role),
		path,
		waitOption(&s.Wait),
		durationOption(AddedFlags, "max-duration", &o.MaxDuration, "0", parseLimit,
			"Timeout for the copy of each source, from when both sides are connected; 0 is none"),
	}
}

// demandOptions are what a side demands of every copy.
func (s *Copy) demandOptions() []option {
	o := &s.Options
	return []option{
		sizeOption(AddedFlags, "max-bytes", &o.MaxBytes, "0", "Refuse a larger file or tree; 0 is no limit"),
		sizeOption(AddedFlags, "max-holes", &o.MaxHoles, "256GiB", "Refuse a file with more holes, which take as long "+
			"as data with a digest other than crc32c or with a readback; 0 is no limit"),
		maxEntriesOption(&o.MaxEntries, "Refuse a tree with more entries; 0 is no limit"),
		idleTimeoutOption(&s.IdleTimeout, idleTimeoutHelp),
		{group: NativeFlags, name: "digest", fallback: digestAuto, json: jsonText, assign: s.assignDigest,
			words: digestChoices(),
			help: "Digest that both sides compare; the stronger choice of both sides is used. auto is crc32c, with " +
				"keys blake3"},
		eitherOption(NativeFlags, "verify", &o.Readback, "digest", "readback",
			"readback: also read the written file back from its disk before the final rename"),
		{group: NativeFlags, name: "durability", fallback: negotiate.DurabilityFull.String(), json: jsonText,
			assign: into(&o.Durability, parseRank[negotiate.Durability](durabilities()...)), words: durabilities(),
			help: "What to flush (fsync) before success: nothing, the file, its directory too; the stronger choice " +
				"of both sides is used"},
		eitherOption(NativeFlags, "sparse", &o.NoSparse, "auto", "never", "never: fill holes with zeros"),
	}
}

// filterList is the list to which --include, --exclude and --exclude-from append: their order matters.
const filterList = "filters"

// commandOptions are those of every command that copies.
func (s *Copy) commandOptions(of sides) []option {
	o := &s.Options
	return []option{
		timeoutOption(&s.Timeout),
		switchOption(AddedFlags, "backup", &o.Backup, "Keep a file that is replaced as FILE~"),
		outputOption(&s.Output, "Report as text on stderr, or as JSON lines on stdout (on stderr if a file is -)"),
		choiceOption(AddedFlags, "progress", &s.Progress, ProgressAuto,
			"auto is a bar on a terminal, else a line every 10s; always a line every second, even if quiet",
			ProgressAuto, ProgressNever, ProgressAlways),
		choiceOption(AddedFlags, "events", &s.Events, eventsFailures, "With -o json: entries of a tree with an event",
			EventsAll, eventsFailures),
		quietOption(&s.Quiet, "Print errors only: no summary, no progress, and unless -l is given no warnings"),
		bandwidthOption(&o.Bandwidth, "Bandwidth limit in bytes per second, such as 100MiB; 0 is no limit"),
		{group: NativeFlags, name: "expect", value: "ALGORITHM:HEX", json: jsonText, words: digestPrefixes(),
			assign: into(&o.Expect, parseExpected),
			help:   "Expected digest of a file, such as crc32c:1f0e22c4, else fail; implies its --digest"},
		switchOption(NativeFlags, "allow-changing", &o.AllowChanging, of.help(
			"Sender: the file may change during the copy; its size at the start is sent",
			"The source may change during the copy; its size at the start is copied")),
		{group: NativeFlags, name: "preserve", value: "owner,xattr,links", json: jsonText,
			assign: s.assignPreserved, words: preservable, several: true,
			help: of.help("Preserve them too, if set on both sides", "Preserve them too, if a daemon permits it") +
				"; mode and modification time are always preserved; links: hard links between the files of a tree"},
		switchOption(NativeFlags, "no-resume", &o.NoResume, of.help(
			"Receiver: neither resume an earlier copy, nor keep a partial file on failure",
			"Neither resume an earlier copy, nor keep a partial file on failure")),
		{group: NativeFlags, name: "include", value: "PATTERN", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterInclude, parsePattern)),
			help: of.help("Sender of a tree: send", "Copy") + " what matches a pattern as in .gitignore. Of all " +
				"--include, --exclude and --exclude-from the first that matches wins"},
		{group: NativeFlags, name: "exclude", value: "PATTERN", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterExclude, parsePattern)),
			help:   of.help("Sender of a tree: do not send", "Do not copy") + " what matches"},
		{group: NativeFlags, name: "exclude-from", value: "FILE", offers: FileValues, json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterExcludeFrom, parsePath)),
			help:   "The same for the patterns in a file such as .gitignore; all three may be repeated"},
		fileOption(NativeFlags, "files-from", "FILE", &s.FilesFrom, of.help("Sender of a tree: send", "Copy")+
			" the paths in FILE only, one per line, relative to the tree; - is stdin"),
		withLetter("0", switchOption(NativeFlags, "null", &s.Null, "Paths in --files-from end with NUL bytes")),
		{group: NativeFlags, name: "links", fallback: linkChoices[tree.LinksCopy], json: jsonText,
			assign: into(&o.Links, parseRank[tree.LinkMode](linkChoices...)), words: linkChoices,
			help: of.help("Sender: symlinks", "Symlinks") +
				" in a tree as symlinks, as what they point to inside of it, or not at all"},
		switchOption(NativeFlags, "checksum", &o.Checksum,
			"Compare what the target has already by digest, not by size and modification time"),
		switchOption(NativeFlags, "dry-run", &s.DryRun, "Print what would be done and change nothing"),
		switchOption(NativeFlags, "fail-fast", &o.FailFast,
			"Stop at the first source, or entry of a tree, that fails"),
	}
}

// existingOptions are about a target that exists, for commands that do not always replace it.
func (s *Copy) existingOptions(of sides) []option {
	o := &s.Options
	return []option{
		switchOption(AddedFlags, "overwrite", &o.Overwrite, of.help("Receive here, replacing FILE if it exists, or "+
			"the files in it that differ; required on one side if both have FILE and differ",
			"Replace the target if it exists, or the files in it that differ")),
		switchOption(NativeFlags, "ignore-existing", &o.IgnoreExisting, of.help(
			"Receive here, adding what is missing in FILE and leaving what exists as it is",
			"Leave the target as it is if it exists, and the files that exist in it")),
		eitherOption(NativeFlags, "if-same", &o.RefuseSame, "skip", "error",
			"If the target is the same already: succeed, or fail as for files that differ"),
	}
}

// options implements Settings. A local copy has no other side, and names what it copies in its arguments.
func (s *Local) options() []option {
	return slices.Concat(generalOptions(&s.Logging, &s.Driver), s.engineOptions(), s.demandOptions(),
		s.commandOptions(oneCommand), s.existingOptions(oneCommand), []option{makePathOption(&s.Options.MakePath)})
}
