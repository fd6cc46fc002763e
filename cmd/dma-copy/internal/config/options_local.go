package config

// localHelp has the options of a copy that local has, too, with the help where it is another there: a local copy has no
// other side, and names what it copies in its arguments.
var localHelp = map[string]string{
	"log-level": "", "log-format": "", "sdk-log-level": "", "json": "",
	"driver": "", "require-hw": "", "doca-libdir": "", "pci-addr": "", "numa": "", "cores": "",
	"chunk": "Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to the K), rounded down to a power of two " +
		"(minimum 4KiB); 0 is automatic",
	"depth":     "DMA tasks in flight; 0 is automatic",
	"timeout":   "",
	"max-bytes": "", "max-holes": "", "max-entries": "", "bwlimit": "",
	"idle-timeout":    "",
	"overwrite":       "Replace DST if it exists, or the files in it that differ",
	"ignore-existing": "Leave DST as it is if it exists, and the files that exist in it",
	"backup":          "With --overwrite: keep the old file as DST~",
	"output":          "Report as text on stderr, or as JSON lines on stdout (on stderr if SRC or DST is -)",
	"progress":        "", "events": "", "quiet": "",
	"digest": "Digest of what is read, compared with that of what is written",
	"expect": "", "verify": "readback: also read DST back from its disk before the final rename",
	"allow-changing": "SRC may change during the copy; its size at the start is copied",
	"durability":     "What to flush (fsync) before success: nothing, the file, its directory too",
	"sparse":         "",
	"preserve": "Preserve them too; mode and modification time are always preserved; links: hard links between the " +
		"files of a tree",
	"files-from": "Copy the paths in FILE only, one per line, relative to SRC; - is stdin",
	"checksum":   "Compare what DST has already by digest, not by size and modification time",
	"if-same":    "If DST exists and is the same: succeed, or fail as for files that differ",
	"dry-run":    "", "fail-fast": "",
}

// oneSidedHelp is of localHelp and transferHelp: both sides follow the options of one command.
var oneSidedHelp = map[string]string{
	"no-resume": "Neither resume an earlier copy, nor keep a partial file on failure",
	"include": "Copy what matches a pattern as in .gitignore. Of all --include, --exclude and --exclude-from the " +
		"first that matches wins",
	"exclude": "Do not copy what matches", "exclude-from": "",
	"null":  "",
	"links": "Symlinks in a tree as symlinks, as what they point to inside of it, or not at all",
}

// options implements Settings.
func (s *Local) options() []option {
	return append(withHelp(s.Copy.options(), oneSidedHelp, localHelp), makePathOption(&s.MakePath))
}
