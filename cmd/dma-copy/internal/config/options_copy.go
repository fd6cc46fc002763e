package config

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// options implements Settings.
func (s *Copy) options() []option {
	return slices.Concat(
		generalOptions(&s.Logging, &s.Driver), s.fileOptions(), driverOptions(&s.Driver), s.deviceOptions(),
		placementOptions(&s.Placement), s.runOptions(), s.reportOptions(), s.contentOptions(), s.targetOptions(),
		s.treeOptions(), s.limitOptions(), s.developerOptions())
}

// fileOptions are those of DOCA's own program.
func (s *Copy) fileOptions() []option {
	return []option{
		deviceOption(&s.Device),
		representorOption(&s.Representor),
		{group: ProgramFlags, name: "file", short: "f", value: "FILE", offers: FileValues,
			json: jsonText, assign: into(&s.File, parseFile),
			help: "File or directory to send, or to create; mandatory; - is stdin, or stdout if the other side has a " +
				"file"},
	}
}

func (s *Copy) deviceOptions() []option {
	return []option{
		roleOption(&s.Role),
		{group: AddedFlags, name: "chunk", value: "SIZE", fallback: "0",
			json: jsonNumber, assign: into(&s.Chunk, parseChunk),
			help: "Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to the K); 0 is automatic. Between two " +
				"dma-copy the smaller of both sides, rounded down to a power of two (minimum 4KiB)"},
		{group: AddedFlags, name: "depth", value: "COUNT", fallback: "0",
			json: jsonNumber, assign: into(&s.Depth, parseCount),
			help: "DMA tasks in flight; 0 is automatic. Between two dma-copy the smaller of both sides"},
		pathOption(NativeFlags, &s.Path, "How file data is copied: by DMA, or over Comch "+
			"producers and consumers (fast); auto is dma if both sides support it"),
	}
}

func (s *Copy) runOptions() []option {
	return []option{
		waitOption(&s.Wait),
		timeoutOption(&s.Timeout),
		{group: AddedFlags, name: "max-duration", value: "DURATION", fallback: "0",
			json: jsonText, assign: into(&s.MaxDuration, parseLimit),
			help: "Timeout for the copy, from when both sides are connected; 0 is none"},
		maxBytesOption(&s.MaxBytes, "Refuse a larger file or tree; 0 is no limit"),
		{group: AddedFlags, name: "max-holes", value: "SIZE", fallback: "256GiB",
			json: jsonNumber, assign: into(&s.MaxHoles, parseMostBytes),
			help: "Refuse a file with more holes, which take as long as data with a digest other than crc32c or with " +
				"a readback; 0 is no limit"},
		idleTimeoutOption(&s.IdleTimeout),
		overwriteOption(&s.Overwrite, "Receive here, replacing FILE if it exists, or "+
			"the files in it that differ; required on one side if both have FILE and differ"),
		switchOption(NativeFlags, "ignore-existing", &s.IgnoreExisting,
			"Receive here, adding what is missing in FILE and leaving what exists as it is"),
		switchOption(AddedFlags, "backup", &s.Backup, "With --overwrite: keep the old file as FILE~"),
		choiceOption(AddedFlags, "protocol", &s.Protocol, protocolAuto,
			"reference forces NVIDIA's protocol, auto prefers the native one", protocolAuto, ProtocolReference),
	}
}

func (s *Copy) reportOptions() []option {
	return []option{
		outputOption(&s.Output, "Report as text on stderr, or as JSON lines on stdout (on stderr with -f -)"),
		choiceOption(AddedFlags, "progress", &s.Progress, ProgressAuto,
			"auto is a bar on a terminal, else a line every 10s; always a line every second, even if quiet",
			ProgressAuto, ProgressNever, ProgressAlways),
		choiceOption(AddedFlags, "events", &s.Events, eventsFailures, "With -o json: entries of a tree with an event",
			EventsAll, eventsFailures),
		quietOption(&s.Quiet, "Print errors only: no summary, no progress, and unless -l is given no warnings"),
	}
}

// contentOptions are about the content of the file and how it is compared.
func (s *Copy) contentOptions() []option {
	return []option{
		{group: NativeFlags, name: "digest",
			fallback: defaultDigest.String(), json: jsonText,
			assign: s.assignDigest, words: digestChoices,
			help: "Digest that both sides compare; the stronger choice of both sides is used; auto is crc32c"},
		{group: NativeFlags, name: "expect", value: "ALGORITHM:HEX", json: jsonText, words: digestPrefixes,
			assign: into(&s.Expect, digest.ParseSum),
			help:   "Expected digest, such as crc32c:1f0e22c4, else fail; implies its --digest"},
		{group: NativeFlags, name: "with", value: "WORD", json: jsonText, assign: into(&s.With, parseWord),
			help: "Copy only with a side that was given the same WORD, and not with somebody else's"},
		choiceOption(NativeFlags, "verify", &s.Verify, verifyDigest,
			"readback: the receiver also reads the file back from its disk before the final rename",
			verifyDigest, VerifyReadback),
		switchOption(NativeFlags, "allow-changing", &s.AllowChanging,
			"Sender: the file may change during the copy; its size at the start is sent"),
	}
}

// targetOptions are about the receiver's file other than its content.
func (s *Copy) targetOptions() []option {
	return []option{
		{group: NativeFlags, name: "durability", fallback: negotiate.DurabilityFull.String(),
			json:   jsonText,
			assign: into(&s.Durability, parseDurability), words: durabilities,
			help: "What to flush (fsync) before success: nothing, the file, its directory too; the stronger choice " +
				"of both sides is used"},
		choiceOption(NativeFlags, "sparse", &s.Sparse, sparseAuto, "never: fill holes with zeros",
			sparseAuto, SparseNever),
		{group: NativeFlags, name: "preserve", value: "owner,xattr,links",
			json:   jsonText,
			assign: into(&s.Preserve, parsePreserved), words: textsOf("owner", "xattr", "links"), several: true,
			help: "Preserve them too, if set on both sides; mode and modification time are always preserved; links: " +
				"hard links between the files of a tree"},
		switchOption(NativeFlags, "no-resume", &s.NoResume,
			"Receiver: neither resume an earlier copy, nor keep a partial file on failure"),
	}
}

// filterList is the list to which --include, --exclude and --exclude-from append: their order matters.
const filterList = "filters"

// treeOptions are about directories, and about files that the receiver has already.
func (s *Copy) treeOptions() []option {
	return append(s.selectionOptions(),
		choiceOption(NativeFlags, "links", &s.Links, LinksCopy,
			"Sender: symlinks in a tree as symlinks, as what they point to inside of it, or not at all",
			LinksCopy, LinksFollow, LinksSkip),
		switchOption(NativeFlags, "checksum", &s.Checksum,
			"Compare files that both sides have by digest, not by size and modification time"),
		choiceOption(NativeFlags, "if-same", &s.IfSame, sameSkip,
			"If both sides have the same file: succeed, or fail as for files that differ", sameSkip, SameError),
		switchOption(NativeFlags, "dry-run", &s.DryRun, "Print what would be copied and change nothing"),
		switchOption(NativeFlags, "fail-fast", &s.FailFast, "Stop at the first entry of a tree that fails"),
	)
}

// selectionOptions select the entries of a tree that are sent.
func (s *Copy) selectionOptions() []option {
	return []option{
		{group: NativeFlags, name: "include", value: "PATTERN", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterInclude, parsePattern)),
			help: "Sender of a tree: send what matches a pattern as in .gitignore. Of all --include, --exclude and " +
				"--exclude-from the first that matches wins"},
		{group: NativeFlags, name: "exclude", value: "PATTERN", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterExclude, parsePattern)),
			help:   "Sender of a tree: do not send what matches"},
		{group: NativeFlags, name: "exclude-from", value: "FILE", offers: FileValues, json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterExcludeFrom, parsePath)),
			help:   "The same for the patterns in a file such as .gitignore; all three may be repeated"},
		fileOption(NativeFlags, "files-from", "FILE", &s.FilesFrom,
			"Sender of a tree: send the paths in FILE only, one per line, relative to it; - is stdin"),
		withLetter("0", switchOption(NativeFlags, "null", &s.Null, "Paths in --files-from end with NUL bytes")),
	}
}

func (s *Copy) limitOptions() []option {
	return []option{
		maxEntriesOption(&s.MaxEntries, "Refuse a tree with more entries; 0 is no limit"),
		bandwidthOption(&s.Bandwidth, "Bandwidth limit in bytes per second, such as 100MiB; 0 is no limit"),
	}
}

// developerOptions are for developers of the program.
func (s *Copy) developerOptions() []option {
	return []option{
		{group: AddedFlags, name: "cpuprofile", value: "FILE", offers: FileValues, json: jsonText, hidden: true,
			assign: into(&s.CPUProfile, parsePath),
			help:   "Write a profile of this side for go tool pprof"},
	}
}
