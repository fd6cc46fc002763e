package config

import (
	"slices"

	"github.com/dma-copy/dma-copy/internal/cli/inventory"
	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/cli/output"
	"github.com/dma-copy/dma-copy/internal/cli/placement"
	"github.com/dma-copy/dma-copy/internal/dmaxfer/digest"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// defaultDigest is cheap and, unlike the stronger ones, can be computed of chunks in any order.
const defaultDigest = digest.CRC32C

// Validate checks the settings of a copy against each other: mandatory ones must be given, and none may conflict.
func (s Copy) Validate() error {
	if s.File == "" {
		return exit.Usagef("--file is missing: name the file to send or to create with -f FILE")
	}
	if err := validateSide(s.Role, s.Representor); err != nil {
		return err
	}
	stream := ""
	if s.IsStream() {
		stream = "-f -"
	}
	if err := s.validateCommon(stream); err != nil {
		return err
	}
	if err := s.Path.validateForDevice(); err != nil {
		return err
	}
	return s.validateProtocol()
}

// validateSide refuses a representor on the host.
func validateSide(role inventory.Role, representor string) error {
	if role != inventory.RoleHost || representor == "" {
		return nil
	}
	return exit.Usagef("--rep-pci %q conflicts with --role host: "+
		"only the DPU side has representors, so leave one of them out", representor)
}

// SetPaths sets source and target from the arguments of the command.
func (s *Local) SetPaths(args []string) error {
	names, fields := [...]string{"SRC", "DST"}, [...]*string{&s.File, &s.Target}
	for i, name := range names {
		if i >= len(args) {
			return exit.Usagef("%s is missing: dma-copy local takes SRC and DST, what to copy and the copy", name)
		}
		path, err := parseFile(args[i])
		if err != nil {
			return exit.Usagef("%s %s: %w", name, quote.Text(args[i]), err)
		}
		*fields[i] = path
	}
	if len(args) > len(names) {
		return exit.Usagef("unexpected argument %s: dma-copy local takes SRC and DST", quote.Text(args[len(names)]))
	}
	if err := checkTarget(s.Target, s.Target, s.File, false); err != nil {
		return err
	}
	s.Target = landing(s.File, s.Target)
	return nil
}

// Validate checks the settings of a local copy against each other.
func (s Local) Validate() error {
	if s.File == option.Stream && s.Target == option.Stream {
		return exit.Usagef("SRC and DST are both -: name a file as one of them")
	}
	return s.validateCommon(s.StreamArgument())
}

// StreamArgument returns the argument that stands for a standard stream, or nothing.
func (s Local) StreamArgument() string {
	switch option.Stream {
	case s.File:
		return "SRC -"
	case s.Target:
		return "DST -"
	}
	return ""
}

// validateCommon checks what any copy has. stream is how a stream was asked for, empty for files.
func (s Copy) validateCommon(stream string) error {
	o := s.Options
	if o.Expect != nil && o.Digest > o.Expect.Algorithm() {
		return exit.Usagef("--expect %s conflicts with --digest %s: the expected digest must be a %s", o.Expect,
			o.Digest, o.Digest)
	}
	if o.Overwrite && o.IgnoreExisting {
		return exit.Usagef("--overwrite conflicts with --ignore-existing: " +
			"what exists is replaced or left as it is, so leave one of them out")
	}
	if err := ValidatePlacement(s.Placement); err != nil {
		return err
	}
	return s.validateTree(stream)
}

// validateTree refuses settings for trees beside those for a single file. Patterns are not refused, because they may be
// the machine's defaults.
func (s Copy) validateTree(stream string) error {
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

// ValidatePlacement returns an error if the wish has both CPUs and a NUMA node.
func ValidatePlacement(wish placement.Wish) error {
	if wish.Cores.Empty() || !wish.Node.HasNumber() {
		return nil
	}
	return exit.Usagef("--cores %s conflicts with --numa %s: both select the CPUs, so leave one of them out",
		quote.Bare(wish.Cores.String()), wish.Node)
}

// validateProtocol refuses what the reference protocol cannot do, if the user insists on that protocol.
func (s Copy) validateProtocol() error {
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
func (s Copy) IsStream() bool { return s.File == option.Stream }

// Asked returns what the copy is asked for that may have no effect.
func (s Copy) Asked() output.Asked {
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
	return output.Asked{BeyondReference: names, Readback: o.Readback, List: s.FilesFrom != ""}
}
