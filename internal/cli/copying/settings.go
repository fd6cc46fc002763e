package copying

import (
	"fmt"
	"math"
	"slices"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/contact"
	"github.com/dma-copy/dma-copy/internal/cli/device"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/dmaxfer"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/tree"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/phrase"
	"github.com/dma-copy/dma-copy/internal/placement"
	"github.com/dma-copy/dma-copy/internal/quantity"
	"github.com/dma-copy/dma-copy/internal/report"
)

// Settings holds the settings of a copy, which is what the program does without a command.
type Settings struct {
	option.Logging
	device.Reach
	output.Form
	Options    dmaxfer.Options // as far as they are settings of their own; the limits of devices are not checked here
	AutoDigest bool            // Options.Digest was not chosen
	File       string          // the file to send or to create; never empty
	Path       device.Path
	Placement  placement.Wish  // CPUs or NUMA node to run on; not both
	With       string          // what both sides must be given; empty: nothing
	Filters    []FilterRule    // which entries of a tree this side sends; first match wins
	FilesFrom  string          // file with the paths that this side sends of a tree, Stream for stdin; empty: all
	Null       bool            // the paths in FilesFrom end with NUL bytes
	Newer      quantity.Moment // this side sends only files of a tree that were modified after this
	Older      quantity.Moment // and before this
	CPUProfile string          // file; empty: none
}

// FilterKind is what a FilterRule does with what it matches.
type FilterKind int

const (
	FilterInclude     FilterKind = iota // the entries that match Text are sent
	FilterExclude                       // they are not sent
	FilterExcludeFrom                   // Text is a file of patterns in the form of .gitignore
)

// FilterRule is one --include, --exclude or --exclude-from.
type FilterRule struct {
	Kind FilterKind
	Text string
}

// Table implements Settings.
func (s *Settings) Table() []option.Option {
	return slices.Concat(
		device.GeneralOptions(&s.Logging, &s.Driver),
		s.EngineOptions(),
		s.PeerOptions(device.PathOption(option.NativeFlags, &s.Path,
			"How file data is copied: by DMA, or over Comch producers and consumers (fast); auto is dma if both "+
				"sides support it", device.DevicePaths)),
		[]option.Option{
			{Group: option.ProgramFlags, Everyday: true, Name: "file", Short: "f", Value: "FILE",
				Offers: option.FileValues, JSON: option.JSONText,
				Assign: option.Into(&s.File, option.ParseFile),
				Help: "File or directory to send, or to create; mandatory; - is stdin, or stdout if the other side " +
					"has a file"},
			option.Either(option.AddedFlags, "protocol", &s.Options.ReferenceOnly, "auto", "reference",
				"reference forces NVIDIA's protocol, auto prefers the native one").In(option.TopicDevice),
			option.Text(option.NativeFlags, "with", "WORD", &s.With, parseWord,
				"Copy only with a side that was given the same WORD, and not with somebody else's").
				In(option.TopicTrust),
		},
		s.DemandOptions(), s.CommandOptions(twoCommands), s.ExistingOptions(twoCommands),
		[]option.Option{
			{Group: option.AddedFlags, Name: "cpuprofile", Value: "FILE", Offers: option.FileValues,
				JSON: option.JSONText, Hidden: true,
				Assign: option.Into(&s.CPUProfile, option.ParsePath),
				Help:   "Write a profile of this side for go tool pprof"},
		})
}

// EngineOptions are about what copies on this side.
func (s *Settings) EngineOptions() []option.Option {
	o := &s.Options
	return slices.Concat(device.DriverOptions(&s.Driver), []option.Option{device.Option(&s.Device)},
		device.PlacementOptions(&s.Placement),
		option.About(option.TopicDevice,
			option.Size(option.AddedFlags, "chunk", &o.Chunk, "0",
				"Bytes per DMA task, such as 65536, 256KiB or 1M (1024 to the K); 0 is automatic. Between two "+
					"dma-copy the smaller of both sides, rounded down to a power of two (minimum 4KiB)"),
			option.Count(option.AddedFlags, "depth", &o.Depth, "0", 0, option.MaxCount,
				"DMA tasks in flight; 0 is automatic. Between two dma-copy the smaller of both sides"),
			option.Count(option.AddedFlags, "lanes", &o.Lanes, "0", 0, MostLanes,
				"Goroutines of this side that move chunks, each with a DMA engine where there is one; 0 is automatic")))
}

// PeerOptions are about the other side.
func (s *Settings) PeerOptions(path option.Option) []option.Option {
	o := &s.Options
	return []option.Option{
		device.Representor(&s.Representor),
		device.RoleOption(&s.Role),
		path,
		device.Wait(&s.Wait),
		option.Duration(option.AddedFlags, "max-duration", &o.MaxDuration, "0", option.ParseLimit,
			"Timeout for the copy of each source, from when both sides are connected; 0 is none").
			In(option.TopicLimits),
	}
}

// DemandOptions are what a side demands of every copy.
func (s *Settings) DemandOptions() []option.Option {
	o := &s.Options
	limits := option.About(option.TopicLimits,
		option.Size(option.AddedFlags, "max-bytes", &o.MaxBytes, "0", "Refuse a larger file or tree; 0 is no limit"),
		option.Size(option.AddedFlags, "max-holes", &o.MaxHoles, "256GiB",
			"Refuse a file with more holes, which take as long as data with a digest other than crc32c or with a "+
				"readback; 0 is no limit"),
		option.Count(option.NativeFlags, "max-entries", &o.MaxEntries, "0", 0, math.MaxInt64,
			"Refuse a tree with more entries; 0 is no limit"),
		device.IdleTimeout(&s.IdleTimeout, device.IdleTimeoutHelp))
	return append(limits, option.About(option.TopicIntegrity, []option.Option{
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
	}...)...)
}

// CommandOptions are the options of every command that copies.
func (s *Settings) CommandOptions(of Sides) []option.Option {
	return slices.Concat([]option.Option{device.Timeout(&s.Timeout)}, s.reportOptions(of), s.contentOptions(of),
		option.About(option.TopicTrees, append(s.treeOptions(of), of.usualOptions()...)...))
}

// usualOptions are flags of cp, scp and rsync that are not needed. DOCA's program has others of these letters.
func (s Sides) usualOptions() []option.Option {
	if s == twoCommands {
		return nil
	}
	return []option.Option{
		option.NoEffect("a", "archive", "No effect: mode and time are always preserved"),
		option.NoEffect("R", "recursive", "No effect: directories are always copied whole"),
	}
}

// reportOptions are about what is printed.
func (s *Settings) reportOptions(of Sides) []option.Option {
	progress := option.Choice(option.AddedFlags, "progress", &s.Progress, output.ProgressAuto,
		"auto is a bar on a terminal, else a line every 10s; always a line every second, even if quiet, and the value "+
			"of --progress alone",
		output.ProgressAuto, output.ProgressNever, output.ProgressAlways)
	progress.Bare, progress.Short = string(output.ProgressAlways), of.letter("P")
	return option.About(option.TopicOutput,
		option.Output(&s.Output, "Report as text on stderr, or as JSON lines on stdout (on stderr if a file is -)"),
		option.Everyday(progress),
		option.Everyday(option.WithLetter(of.letter("v"), option.Switch(option.AddedFlags, "verbose", &s.Verbose,
			"Print a longer summary; it also has path, slowest stage, digest, and why this driver"))),
		option.Choice(option.AddedFlags, "events", &s.Events, output.EventsFailures,
			"With -o json: entries of a tree with an event",
			output.EventsAll, output.EventsFailures),
		option.Quiet(&s.Quiet, "Print errors only: no summary, no progress, and unless -l is given no warnings"))
}

// contentOptions are about the content of files.
func (s *Settings) contentOptions(of Sides) []option.Option {
	o := &s.Options
	return []option.Option{
		option.Everyday(option.Rate(option.NativeFlags, "bwlimit", &o.Bandwidth, "0",
			"Bandwidth limit in bytes per second, such as 100MiB; 0 is no limit")).In(option.TopicLimits),
		{Group: option.NativeFlags, Topic: option.TopicIntegrity, Name: "expect", Value: "ALGORITHM:HEX",
			JSON: option.JSONText, Words: digestPrefixes(),
			Assign: option.Into(&o.Expect, parseExpected), Excludes: []string{"files-from"},
			Help: "Expected digest of a file, such as crc32c:1f0e22c4, else fail; implies its --digest"},
		option.Switch(option.NativeFlags, "allow-changing", &o.AllowChanging, of.help(
			"Sender: the file may change during the copy; its size at the start is sent",
			"The source may change during the copy; its size at the start is copied")).In(option.TopicIntegrity),
	}
}

// treeOptions are about files and trees: what is copied, and how it lands.
func (s *Settings) treeOptions(of Sides) []option.Option {
	o := &s.Options
	return []option.Option{
		option.Switch(option.AddedFlags, "backup", &o.Backup, "Keep a file that is replaced as FILE~"),
		{Group: option.NativeFlags, Everyday: true, Name: "preserve", Value: "owner,xattr,links|all",
			JSON:   option.JSONText,
			Assign: s.assignPreserved, Words: preservable, Several: true,
			Help: of.help("Preserve them too, if set on both sides", "Preserve them too, if a daemon permits it") +
				"; mode and modification time are always preserved; links: hard links between the files of a tree; " +
				"all: also ACLs, capabilities, labels and trusted attributes, for root"},
		option.Switch(option.NativeFlags, "no-resume", &o.NoResume, of.help(
			"Receiver: neither resume an earlier copy, nor keep a partial file on failure",
			"Neither resume an earlier copy, nor keep a partial file on failure")),
		{Group: option.NativeFlags, Name: "include", Value: "PATTERN", JSON: option.JSONList, List: filterList,
			Assign: option.Appending(&s.Filters, parseRule(FilterInclude, parsePattern)),
			Help: of.help("Sender of a tree: send", "Copy") +
				" what matches a pattern as in .gitignore. The first of all --include, --exclude and --exclude-from " +
				"that matches wins"},
		{Group: option.NativeFlags, Everyday: true, Name: "exclude", Value: "PATTERN", JSON: option.JSONList,
			List:   filterList,
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
		option.WithLetter("x", option.Switch(option.NativeFlags, "one-file-system", &o.Scope.OneFileSystem, of.help(
			"Sender of a tree: leave", "Leave")+" out what is below a mount point of the source")),
		option.Size(option.NativeFlags, "min-size", &o.Scope.MinSize, "0",
			of.help("Sender of a tree: leave", "Leave")+" out smaller files of a tree"),
		option.Size(option.NativeFlags, "max-size", &o.Scope.MaxSize, "0",
			of.help("Sender of a tree: leave", "Leave")+" out larger files of a tree; 0 is no limit"),
		momentOption("newer-than", &s.Newer, of.help("Sender of a tree: send", "Copy")+
			" only files of a tree that were modified after TIME: an age such as 36h or 7d, 2026-01-31, or "+
			"2026-01-31T12:00:00Z; 0 is no limit"),
		momentOption("older-than", &s.Older, of.help("Sender of a tree: send", "Copy")+
			" only files of a tree that were modified before TIME"),
		{Group: option.NativeFlags, Name: "links", Default: linkChoices[tree.LinksCopy], JSON: option.JSONText,
			Assign: option.Into(&o.Links, option.ParseRank[tree.LinkMode](linkChoices...)), Words: linkChoices,
			Help: of.help("Sender: symlinks", "Symlinks") +
				" in a tree as symlinks, as what they point to inside of it, or not at all"},
		option.Everyday(option.Switch(option.NativeFlags, "checksum", &o.Checksum,
			"Compare what the target has already by digest, not by size and modification time")),
		option.Everyday(option.WithLetter(of.letter("n"), option.Switch(option.NativeFlags, "dry-run", &s.DryRun,
			"Print what would be done and change nothing"))),
		option.Switch(option.NativeFlags, "fail-fast", &o.FailFast,
			"Stop at the first source, or entry of a tree, that fails"),
	}
}

// ExistingOptions are about a target that exists, for commands that do not always replace it.
func (s *Settings) ExistingOptions(of Sides) []option.Option {
	o := &s.Options
	return option.About(option.TopicTrees,
		option.Everyday(option.Switch(option.AddedFlags, "overwrite", &o.Overwrite,
			of.help("Receive here, replacing FILE if it exists, or the files in it that differ; required on one side "+
				"if both have FILE and differ",
				"Replace the target if it exists, or the files in it that differ"))),
		option.Switch(option.NativeFlags, "ignore-existing", &o.IgnoreExisting, of.help(
			"Receive here, adding what is missing in FILE and leaving what exists as it is",
			"Leave the target as it is if it exists, and the files that exist in it")),
		option.Either(option.NativeFlags, "if-same", &o.RefuseSame, "skip", "error",
			"If the target is the same already: succeed, or fail as for files that differ"))
}

// Validate checks the settings of a copy against each other: mandatory ones must be given, and none may conflict.
func (s Settings) Validate() error {
	if s.File == "" {
		return exit.Usagef("--file is missing: name the file to send or to create with -f FILE")
	}
	if err := device.ValidateSide(s.Role, s.Representor); err != nil {
		return err
	}
	stream := ""
	if s.IsStream() {
		stream = "-f -"
	}
	if err := s.ValidateCommon(stream); err != nil {
		return err
	}
	if err := s.Path.ValidateForDevice(); err != nil {
		return err
	}
	return s.validateProtocol()
}

// ChooseDigest decides which digest auto is. Data travel by DMA, outside of TLS, and only a digest that nobody can
// forge lets an authenticated peer answer for them. An expected digest decides by itself.
func (s *Settings) ChooseDigest(auth contact.AuthChoice) {
	if s.AutoDigest && auth == contact.AuthKeys && s.Options.Expect == nil {
		s.Options.Digest = digest.BLAKE3
	}
}

func (s *Settings) assignDigest(text string) error {
	if s.AutoDigest = text == digestAuto; s.AutoDigest {
		s.Options.Digest = defaultDigest
		return nil
	}
	a, err := digest.ParseAlgorithm(text)
	if err != nil {
		return fmt.Errorf("not a digest; give %s", phrase.Or(digestChoices()))
	}
	s.Options.Digest = a
	return nil
}

func (s *Settings) assignPreserved(text string) error {
	words, err := option.ParseList(option.ParseOneOf(preservable...))(text)
	all := slices.Contains(words, preserveAll)
	s.Options.Owner, s.Options.Xattrs = all || slices.Contains(words, "owner"), all || slices.Contains(words, "xattr")
	s.Options.HardLinks, s.Options.Privileged = all || slices.Contains(words, "links"), all
	return err
}

// PreserveAsUser has --preserve all of a side that may receive without the rights of root preserve what it can.
func PreserveAsUser(o *dmaxfer.Options, uid int, log zerolog.Logger) {
	if o.Privileged && uid != 0 {
		o.Owner, o.Privileged = false, false
		log.Warn().Msg("--preserve all needs root: owners, ACLs, capabilities and trusted attributes are not preserved")
	}
}

// ValidateCommon checks what any copy has. stream is how a stream was asked for, empty for files.
func (s Settings) ValidateCommon(stream string) error {
	o := s.Options
	if o.Expect != nil && o.Digest > o.Expect.Algorithm() {
		return exit.Usagef("--expect %s conflicts with --digest %s: the expected digest must be a %s", o.Expect,
			o.Digest, o.Digest)
	}
	if o.Overwrite && o.IgnoreExisting {
		return exit.Usagef("--overwrite conflicts with --ignore-existing: " +
			"what exists is replaced or left as it is, so leave one of them out")
	}
	if scope := o.Scope; scope.MaxSize > 0 && scope.MinSize > scope.MaxSize {
		return exit.Usagef("--min-size %d exceeds --max-size %d: no file would be copied", scope.MinSize, scope.MaxSize)
	}
	if err := device.ValidatePlacement(s.Placement); err != nil {
		return err
	}
	return s.validateTree(stream)
}

// validateTree refuses settings for trees together with settings for a single file. Patterns are not refused, because
// they may be the machine's defaults.
func (s Settings) validateTree(stream string) error {
	switch {
	case s.Null && s.FilesFrom == "":
		return exit.Usagef(
			"--null is for the list of --files-from: name that with --files-from FILE, or leave --null out")
	case stream != "" && s.FilesFrom != "":
		return exit.Usagef("%s conflicts with --files-from: a stream is not a tree, so leave one of them out", stream)
	case stream != "" && s.DryRun:
		return exit.Usagef("%s conflicts with --dry-run: a stream has no plan, so leave one of them out", stream)
	case s.Options.Expect != nil && s.FilesFrom != "":
		return exit.Usagef("--expect %s conflicts with --files-from: a tree has no digest, so leave one of them out",
			s.Options.Expect)
	}
	return nil
}

// validateProtocol refuses what the reference protocol cannot do, if the user insists on that protocol.
func (s Settings) validateProtocol() error {
	if !s.Options.ReferenceOnly {
		return nil
	}
	for _, each := range []struct {
		given bool
		flag  string
	}{
		{s.IsStream(), "-f -"}, {s.Options.Expect != nil, "--expect"}, {s.With != "", "--with"},
		{s.DryRun, "--dry-run"}, {s.Options.IgnoreExisting, "--ignore-existing"}, {s.FilesFrom != "", "--files-from"},
	} {
		if each.given {
			return exit.Usagef("%s conflicts with --protocol reference: that protocol does not support it, "+
				"so leave one of them out", each.flag)
		}
	}
	return nil
}

// IsStream reports whether this side copies from stdin or to stdout.
func (s Settings) IsStream() bool { return s.File == option.Stream }

// Asked returns what the copy is asked for that may have no effect.
func (s Settings) Asked() report.Asked {
	var names []string
	o := s.Options
	for name, asked := range map[string]bool{
		"--verify readback": o.Readback,
		"--preserve":        o.Owner || o.Xattrs || o.HardLinks,
		"--bwlimit":         o.Bandwidth > 0,
		"--digest":          o.Digest > defaultDigest,
		"--checksum":        o.Checksum,
		"--ignore-existing": o.IgnoreExisting,
	} {
		if asked {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return report.Asked{BeyondReference: names, Readback: o.Readback, List: s.FilesFrom != ""}
}
