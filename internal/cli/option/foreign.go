package option

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/dma-copy/dma-copy/internal/quote"
	"github.com/spf13/pflag"
)

// advice says what to write instead of a flag.
type advice struct {
	write string // a flag that the command must have; empty: none
	note  string
}

// leaveOut begins an advice for a flag that is not needed, and the others are such advices.
const (
	leaveOut   = "leave it out: "
	copiedAll  = leaveOut + "directories are copied whole, with mode and time"
	compressed = leaveOut + "data is not compressed"
	wholeFile  = leaveOut + "a file that differs is copied whole"
	resumed    = leaveOut + "an interrupted copy is resumed"
	noShell    = "a copy needs dma-copy on both sides, and no ssh"
	onlySync   = "use dma-copy sync --delete"
)

// foreign are flags of cp, scp, rsync, rclone and tar that a command that copies does not have.
var foreign = map[string]advice{
	"-a":                    {note: copiedAll},
	"--archive":             {note: copiedAll},
	"-R":                    {note: copiedAll},
	"--recursive":           {note: copiedAll},
	"-t":                    {note: copiedAll},
	"--times":               {note: copiedAll},
	"--perms":               {note: copiedAll},
	"-z":                    {note: compressed},
	"--compress":            {note: compressed},
	"-C":                    {note: compressed},
	"-S":                    {note: leaveOut + "holes are kept"},
	"-W":                    {note: wholeFile},
	"--whole-file":          {note: wholeFile},
	"--partial":             {note: resumed},
	"--append":              {note: resumed},
	"--inplace":             {note: "a target is always written under another name and renamed"},
	"-e":                    {note: noShell},
	"--rsh":                 {note: noShell},
	"--acls":                {write: "--preserve all"},
	"-A":                    {write: "--preserve all"},
	"--remove-source-files": {note: "a source is never removed: use rm after the copy"},
	"--delete":              {note: onlySync},
	"--delete-after":        {note: onlySync},
	"-n":                    {write: "--dry-run"},
	"-P":                    {write: "--progress"},
	"-u":                    {write: "--ignore-existing"},
	"--update":              {write: "--ignore-existing"},
	"--force":               {write: "--overwrite"},
	"-c":                    {write: "--checksum"},
	"-b":                    {write: "--backup"},
	"-L":                    {write: "--links follow"},
	"--copy-links":          {write: "--links follow"},
	"--dereference":         {write: "--links follow"},
	"-g":                    {write: "--preserve owner"},
	"--owner":               {write: "--preserve owner"},
	"--group":               {write: "--preserve owner"},
	"-X":                    {write: "--preserve xattr"},
	"--xattrs":              {write: "--preserve xattr"},
	"-H":                    {write: "--preserve links"},
	"--hard-links":          {write: "--preserve links"},
	"--transfers":           {write: "--lanes"},
	"--limit":               {write: "--bwlimit"},
	"--min-age":             {write: "--older-than"},
	"--max-age":             {write: "--newer-than"},
}

// adviceOn returns what to write instead of an unknown flag, empty if nothing is known. Only commands that copy, which
// have --checksum, are like the programs of the table.
func adviceOn(spelled string, flags *pflag.FlagSet) string {
	known, is := foreign[spelled]
	if !is || flags.Lookup("checksum") == nil {
		return ""
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(known.write, "--"), " ")
	switch {
	case known.write == "":
		return known.note
	case flags.Lookup(name) == nil:
		return ""
	}
	return "write " + known.write
}

// JoinBare joins the value to each flag on a command line that needs none, where the next word is one of its values:
// --progress never becomes --progress=never.
func (c Commands) JoinBare(args []string) []string {
	joined := make([]string, 0, len(args))
	table := sync.OnceValue(c.table)
	for i := 0; i < len(args); i++ {
		if args[i] == separator {
			return append(joined, args[i:]...)
		}
		if name, long := strings.CutPrefix(args[i], "--"); long && i+1 < len(args) {
			opt, _ := ByName(table(), name)
			if opt.Bare != "" && slices.Contains(opt.Words, args[i+1]) {
				joined = append(joined, args[i]+"="+args[i+1])
				i++
				continue
			}
		}
		joined = append(joined, args[i])
	}
	return joined
}

// usual is what the letter of a flag stands for in other programs, where it takes no value.
var usual = map[string]string{"r": "directories are copied whole", "p": "mode and time are always preserved"}

// Eaten returns a note about each flag of a command line that took the next argument as its value, though in other
// programs the flag takes none: the value is the name of a file. line is as it was typed.
func Eaten(flags *pflag.FlagSet, line []string) (notes []string) {
	for len(line) > 0 {
		w := firstWord(flags, line)
		line = line[len(w.typed):]
		if w.flag == nil || len(w.typed) < 2 || w.typed[0] != "-"+w.flag.Shorthand {
			continue
		}
		_, err := os.Lstat(w.value)
		if meaning, is := usual[w.flag.Shorthand]; is && err == nil {
			notes = append(notes, fmt.Sprintf("%s took %s as --%s; leave %[1]s out: %[4]s",
				w.typed[0], quote.Text(w.value), w.flag.Name, meaning))
		}
	}
	return notes
}
