package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/cli/manpage"
)

// Described is an option in words, for the help and the manual.
type Described struct {
	Names   []string // as on the command line, with their dashes
	Value   string   // stands for the value; empty for a switch
	Help    string   // without a period at the end
	Default string   // in parentheses; empty: none
}

// Describe returns the options of a command that the help has, those of some groups or all. Hidden ones are left out.
func Describe(s Settings, groups ...FlagGroup) (list []Described) {
	for _, opt := range s.options() {
		if opt.hidden || len(groups) > 0 && !slices.Contains(groups, opt.group) {
			continue
		}
		d := opt.described()
		for _, name := range [][2]string{{opt.short, opt.name}, {opt.aliasKey, opt.alias}} {
			if name[0] != "" {
				d.Names = append(d.Names, "-"+name[0])
			}
			if name[1] != "" {
				d.Names = append(d.Names, "--"+name[1])
			}
		}
		list = append(list, d)
	}
	return list
}

// described returns the option without names. The default of a switch goes without saying.
func (o option) described() Described {
	d := Described{Value: o.placeholder(), Help: o.help}
	if o.fallback != "" && !o.isSwitch() {
		d.Default = "(default " + o.fallback + ")"
	}
	return d
}

// Sentence returns the help with the default and a period.
func (d Described) Sentence() string { return strings.TrimSuffix(d.Help+" "+d.Default, " ") + "." }

// DescribedGroup is a group of the parameter file.
type DescribedGroup struct {
	Name  string
	About string        // a sentence
	Keys  []manpage.Row // with the type of JSON, such as "number or string"
}

// DescribeFile returns the groups of the parameter file, in the order in which errors name them.
func DescribeFile() []DescribedGroup {
	all := everyOption()
	return []DescribedGroup{
		{groupGeneral, "Options that every DOCA program has.", describeKeys(all, groupGeneral)},
		{groupProgram, "All other options of a copy and of the commands, except for those of serve alone. A command " +
			"ignores the keys of the others.", describeKeys(all, groupProgram)},
		{groupDPDK, "Accepted and ignored, with a warning.", nil},
		{groupServe, "Options of serve. They have precedence over the same keys of doca_program_flags, and no other " +
			"command reads them.", describeKeys((&Serve{}).options(), groupServe)},
		{groupPeers, "Daemons that commands can name: an object for each peer, whose key is its name.",
			describeKeys(peerKeys(new(Peer)), groupPeers)},
	}
}

// describeKeys returns the keys of a table that a group of the file has.
func describeKeys(table []option, group string) (keys []manpage.Row) {
	ownTable := group == groupServe || group == groupPeers
	for _, opt := range table {
		if opt.hidden || opt.json == jsonNone || !ownTable && paramsGroup(opt) != group {
			continue
		}
		key := manpage.Row{Term: opt.name, Text: opt.described().Sentence()}
		key.Kind = strings.ReplaceAll(strings.TrimPrefix(opt.json.wanted, "a "), " a ", " ")
		if opt.alias != "" {
			key.Text += fmt.Sprintf(" Another name is %s.", opt.alias)
		}
		keys = append(keys, key)
	}
	return keys
}

// ValueKind is what a shell completes the value of an option with.
type ValueKind int

const (
	NoValues          ValueKind = iota // numbers, patterns and texts: nothing can be offered
	WordValues                         // words that the option accepts
	FileValues                         // names of files and directories
	DirectoryValues                    // names of directories
	DeviceValues                       // devices of the driver
	RepresentorValues                  // representors of the driver's devices
)

// Values are the values that a shell can offer for an option.
type Values struct {
	Kind  ValueKind
	Words []string // of WordValues, in the order of the help; one that ends with a colon needs more text behind it
	List  bool     // several words are accepted, with commas in between
}

// ValuesOf returns what a shell can offer as the value of a flag of the command, by one of its long names.
func ValuesOf(s Settings, flag string) Values {
	opt, known := optionByName(s.options(), flag)
	if !known {
		return Values{}
	}
	if opt.words == nil {
		return Values{Kind: opt.offers}
	}
	return Values{Kind: WordValues, Words: opt.words, List: opt.several}
}

// Exclusive returns sets of flags of the command: each set excludes all but one of its flags.
func Exclusive(s Settings) (sets [][]string) {
	table := s.options()
	for _, opt := range table {
		if opt.alias != "" {
			sets = append(sets, opt.names())
		}
	}
	for _, set := range [][]string{
		{"cores", "numa"}, {"expect", "files-from"}, {"files-from", "delete"}, {"to", "trust-first"}, {"to", "rep-pci"},
	} {
		_, first := optionByName(table, set[0])
		_, second := optionByName(table, set[1])
		if first && second {
			sets = append(sets, set)
		}
	}
	return sets
}

// textsOf returns the words of a type of their own.
func textsOf[T ~string](words ...T) []string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return texts
}
