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
		{group: ProgramFlags, name: "file", short: "f", value: "FILE",
			json: jsonText, assign: into(&s.File, parseFile),
			help: "File or directory to send, or to create;\nmandatory; - is stdin, or stdout if the other\n" +
				"side has a file"},
	}
}

func (s *Copy) deviceOptions() []option {
	return []option{
		roleOption(&s.Role),
		{group: AddedFlags, name: "chunk", value: "SIZE", fallback: "0",
			json: jsonNumber, assign: into(&s.Chunk, parseChunk),
			help: "Bytes per DMA task, such as 65536, 256KiB or 1M\n(1024 to the K); 0 is automatic. Between two\n" +
				"dma-copy the smaller of both sides, rounded\ndown to a power of two (minimum 4KiB)"},
		{group: AddedFlags, name: "depth", value: "COUNT", fallback: "0",
			json: jsonNumber, assign: into(&s.Depth, parseCount),
			help: "DMA tasks in flight; 0 is automatic. Between\ntwo dma-copy the smaller of both sides"},
		pathOption(NativeFlags, &s.Path, "How file data is copied: by DMA, or over Comch\n"+
			"producers and consumers (fast); auto is dma if\nboth sides support it"),
	}
}

func (s *Copy) runOptions() []option {
	return []option{
		waitOption(&s.Wait),
		timeoutOption(&s.Timeout),
		{group: AddedFlags, name: "max-duration", value: "DURATION", fallback: "0",
			json: jsonText, assign: into(&s.MaxDuration, parseLimit),
			help: "Timeout for the copy, from when both sides are\nconnected; 0 is none"},
		maxBytesOption(&s.MaxBytes, "Refuse a larger file or tree; 0 is no limit"),
		{group: AddedFlags, name: "max-holes", value: "SIZE", fallback: "256GiB",
			json: jsonNumber, assign: into(&s.MaxHoles, parseMostBytes),
			help: "Refuse a file with more holes, which take as\n" +
				"long as data with a digest other than crc32c or\nwith a readback; 0 is no limit"},
		idleTimeoutOption(&s.IdleTimeout),
		overwriteOption(&s.Overwrite, "Receive here, replacing FILE if it exists, or\n"+
			"the files in it that differ; required on one\nside if both have FILE and differ"),
		{group: AddedFlags, name: "backup", fallback: "false", json: jsonSwitch,
			assign: into(&s.Backup, parseSwitch),
			help:   "With --overwrite: keep the old file as FILE~"},
		{group: AddedFlags, name: "protocol", value: "auto|reference", fallback: string(protocolAuto), json: jsonText,
			assign: into(&s.Protocol, parseOneOf(protocolAuto, ProtocolReference)),
			help:   "reference forces NVIDIA's protocol, auto\nprefers the native one"},
	}
}

func (s *Copy) reportOptions() []option {
	return []option{
		outputOption(&s.Output, "Report as text on stderr, or as JSON lines on\nstdout (on stderr with -f -)"),
		{group: AddedFlags, name: "progress", value: "auto|never|always", fallback: string(ProgressAuto),
			json:   jsonText,
			assign: into(&s.Progress, parseOneOf(ProgressAuto, ProgressNever, ProgressAlways)),
			help:   "auto is a bar on a terminal, else a line every\n10s; always a line every second, even if quiet"},
		{group: AddedFlags, name: "events", value: "all|failures", fallback: string(eventsFailures), json: jsonText,
			assign: into(&s.Events, parseOneOf(EventsAll, eventsFailures)),
			help:   "With -o json: entries of a tree with an event"},
		quietOption(&s.Quiet, "Print errors only: no summary, no progress, and\nunless -l is given no warnings"),
	}
}

// contentOptions are about the content of the file and how it is compared.
func (s *Copy) contentOptions() []option {
	return []option{
		{group: NativeFlags, name: "digest", value: "auto|none|crc32c|xxh3|blake3|sha256",
			fallback: defaultDigest.String(), json: jsonText,
			assign: s.assignDigest,
			help:   "Digest that both sides compare; the stronger\nchoice of both sides is used; auto is crc32c"},
		{group: NativeFlags, name: "expect", value: "ALGORITHM:HEX", json: jsonText, words: digestPrefixes,
			assign: into(&s.Expect, digest.ParseSum),
			help:   "Expected digest, such as crc32c:1f0e22c4, else\nfail; implies its --digest"},
		{group: NativeFlags, name: "verify", value: "digest|readback", fallback: string(verifyDigest), json: jsonText,
			assign: into(&s.Verify, parseOneOf(verifyDigest, VerifyReadback)),
			help:   "readback: the receiver also reads the file back\nfrom its disk before the final rename"},
		{group: NativeFlags, name: "allow-changing", fallback: "false", json: jsonSwitch,
			assign: into(&s.AllowChanging, parseSwitch),
			help:   "Sender: the file may change during the copy;\nits size at the start is sent"},
	}
}

// targetOptions are about the receiver's file other than its content.
func (s *Copy) targetOptions() []option {
	return []option{
		{group: NativeFlags, name: "durability", value: "none|file|full", fallback: negotiate.DurabilityFull.String(),
			json:   jsonText,
			assign: into(&s.Durability, parseDurability),
			help: "What to flush (fsync) before success: nothing,\nthe file, its directory too; the stronger\n" +
				"choice of both sides is used"},
		{group: NativeFlags, name: "sparse", value: "auto|never", fallback: string(sparseAuto), json: jsonText,
			assign: into(&s.Sparse, parseOneOf(sparseAuto, SparseNever)),
			help:   "never: fill holes with zeros"},
		{group: NativeFlags, name: "preserve", value: "owner,xattr,links",
			json:   jsonText,
			assign: into(&s.Preserve, parsePreserved),
			help: "Preserve them too, if set on both sides; mode\nand modification time are always preserved;\n" +
				"links: hard links between the files of a tree"},
		{group: NativeFlags, name: "no-resume", fallback: "false", json: jsonSwitch,
			assign: into(&s.NoResume, parseSwitch),
			help:   "Receiver: neither resume an earlier copy, nor\nkeep a partial file on failure"},
	}
}

// filterList is the list to which --include, --exclude and --exclude-from append: their order matters.
const filterList = "filters"

// treeOptions are about directories, and about files that the receiver has already.
func (s *Copy) treeOptions() []option {
	return append(s.selectionOptions(),
		option{group: NativeFlags, name: "links", value: "copy|follow|skip", fallback: string(LinksCopy),
			json:   jsonText,
			assign: into(&s.Links, parseOneOf(LinksCopy, LinksFollow, LinksSkip)),
			help:   "Sender: symlinks in a tree as symlinks, as what\nthey point to inside of it, or not at all"},
		option{group: NativeFlags, name: "checksum", fallback: "false", json: jsonSwitch,
			assign: into(&s.Checksum, parseSwitch),
			help:   "Compare files that both sides have by digest,\nnot by size and modification time"},
		option{group: NativeFlags, name: "if-same", value: "skip|error", fallback: string(sameSkip), json: jsonText,
			assign: into(&s.IfSame, parseOneOf(sameSkip, SameError)),
			help:   "If both sides have the same file: succeed, or\nfail as for files that differ"},
		option{group: NativeFlags, name: "dry-run", fallback: "false", json: jsonSwitch,
			assign: into(&s.DryRun, parseSwitch),
			help:   "Print what would be copied and change nothing"},
		option{group: NativeFlags, name: "fail-fast", fallback: "false", json: jsonSwitch,
			assign: into(&s.FailFast, parseSwitch),
			help:   "Stop at the first entry of a tree that fails"},
	)
}

// selectionOptions select the entries of a tree that are sent.
func (s *Copy) selectionOptions() []option {
	return []option{
		{group: NativeFlags, name: "include", value: "PATTERN", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterInclude, parsePattern)),
			help: "Sender of a tree: send what matches a pattern\nas in .gitignore. Of all --include, --exclude\n" +
				"and --exclude-from the first that matches wins"},
		{group: NativeFlags, name: "exclude", value: "PATTERN", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterExclude, parsePattern)),
			help:   "Sender of a tree: do not send what matches"},
		{group: NativeFlags, name: "exclude-from", value: "FILE", json: jsonList, list: filterList,
			assign: appending(&s.Filters, parseRule(FilterExcludeFrom, parsePath)),
			help:   "The same for the patterns in a file such as\n.gitignore; all three may be repeated"},
		{group: NativeFlags, name: "files-from", value: "FILE", json: jsonText,
			assign: into(&s.FilesFrom, parsePath),
			help:   "Sender of a tree: send the paths in FILE only,\none per line, relative to it; - is stdin"},
		{group: NativeFlags, name: "null", short: "0", fallback: "false", json: jsonSwitch,
			assign: into(&s.Null, parseSwitch),
			help:   "Paths in --files-from end with NUL bytes"},
	}
}

func (s *Copy) limitOptions() []option {
	return []option{
		maxEntriesOption(&s.MaxEntries, "Refuse a tree with more entries; 0 is no limit"),
		bandwidthOption(&s.Bandwidth, "Bandwidth limit in bytes per second, such as\n100MiB; 0 is no limit"),
	}
}

// developerOptions are for developers of the program.
func (s *Copy) developerOptions() []option {
	return []option{
		{group: AddedFlags, name: "cpuprofile", value: "FILE", json: jsonText, hidden: true,
			assign: into(&s.CPUProfile, parsePath),
			help:   "Write a profile of this side for go tool pprof"},
	}
}
