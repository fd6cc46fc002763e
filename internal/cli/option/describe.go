package option

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Described is an option in words, for the help and the manual.
type Described struct {
	Names   []string // as on the command line, with their dashes
	Value   string   // stands for the value; empty for a switch
	Help    string   // without a period at the end
	Default string   // in parentheses; empty: none
	Native  bool     // needs dma-copy on both sides

	topic    Topic
	everyday bool
}

// Titled is a block of the help.
type Titled struct {
	Title string
	List  []Described
}

// fewOptions is how many a command may have for all of them to be everyday ones.
const fewOptions = 12

// Everydays returns the options of a command that are in the short help: those that are marked, or all where there are
// few. They are in the order of their topics.
func Everydays(s Settings) []Described {
	all := Describe(s)
	slices.SortStableFunc(all, func(a, b Described) int { return cmp.Compare(a.topic, b.topic) })
	if len(all) <= fewOptions {
		return all
	}
	return slices.DeleteFunc(all, func(d Described) bool { return !d.everyday })
}

// ByTopic returns the options of a command that Everydays does not, by topic.
func ByTopic(s Settings) (blocks []Titled) {
	all := Describe(s)
	if len(all) <= fewOptions {
		return nil
	}
	for topic := range topics {
		list := slices.DeleteFunc(slices.Clone(all), func(d Described) bool { return d.everyday || d.topic != topic })
		if len(list) > 0 {
			blocks = append(blocks, Titled{topic.String(), list})
		}
	}
	return blocks
}

// Describe returns the options of a command that the help has. Hidden ones are left out.
func Describe(s Settings) (list []Described) {
	for _, opt := range s.Table() {
		if opt.Hidden {
			continue
		}
		d := opt.described()
		for _, name := range [][2]string{{opt.Short, opt.Name}, {opt.AliasShort, opt.Alias}} {
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
func (o Option) described() Described {
	d := Described{
		Value: o.placeholder(), Help: o.Help, Native: o.Group == NativeFlags, topic: o.Topic, everyday: o.Everyday,
	}
	if o.Default != "" && !o.IsSwitch() {
		d.Default = "(default " + o.Default + ")"
	}
	return d
}

// Brief returns the option with the first clause of its help, and without its alias and default.
func (d Described) Brief() Described {
	d.Help, d.Default = InBrief(d.Help), ""
	if long := slices.IndexFunc(d.Names, func(name string) bool { return strings.HasPrefix(name, "--") }); long >= 0 {
		d.Names = d.Names[:long+1]
	}
	return d
}

// clauseEnd is where a clause ends; two dots are the name of a directory.
var clauseEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`; |[^.]\. `) })

// InBrief returns the first clause of a help.
func InBrief(help string) string {
	if end := clauseEnd().FindStringIndex(help); end != nil {
		return strings.TrimRight(help[:end[1]], ";. ")
	}
	return help
}

// Sentence returns the help with the default and a period.
func (d Described) Sentence() string { return strings.TrimSuffix(d.Help+" "+d.Default, " ") + "." }

// Row is an entry of a list in the help, the manual and the reference pages.
type Row struct {
	Term string
	Text string
	Kind string // in parentheses behind the term; empty: none
}

// DescribedGroup is a group of the parameter file.
type DescribedGroup struct {
	Name  string
	About string // a sentence
	Keys  []Row  // with the type of JSON, such as "number or string"
}

// DescribeFile returns the groups of the parameter file, in the order in which errors name them.
func (c Commands) DescribeFile() []DescribedGroup {
	all := c.table()
	return []DescribedGroup{
		{groupGeneral, "Options that every DOCA program has.", describeKeys(all, groupGeneral)},
		{groupProgram, "All other options of a copy and of the commands, except for the options of serve alone. A " +
			"command ignores the keys of the others.", describeKeys(all, groupProgram)},
		{groupDPDK, "Accepted and ignored, with a warning.", nil},
		{GroupServe, "Options of serve. They have precedence over the same keys of doca_program_flags, and no other " +
			"command reads them.", describeKeys(blank(c.owner(GroupServe)).Table(), GroupServe)},
		{groupPeers, "Daemons that commands can name: an object for each peer, whose key is its name.",
			describeKeys(peerKeys(new(Peer)), groupPeers)},
	}
}

// describeKeys returns the keys of a table that a group of the file has.
func describeKeys(table []Option, group string) (keys []Row) {
	ownTable := group == GroupServe || group == groupPeers
	for _, opt := range table {
		if opt.Hidden || opt.JSON == JSONNone || !ownTable && opt.FileGroup() != group {
			continue
		}
		key := Row{Term: opt.Name, Text: opt.described().Sentence()}
		key.Kind = strings.ReplaceAll(strings.TrimPrefix(opt.JSON.wanted, "a "), " a ", " ")
		if opt.Alias != "" {
			key.Text += fmt.Sprintf(" Another name is %s.", opt.Alias)
		}
		keys = append(keys, key)
	}
	return keys
}

// ValueKind is what a shell completes the value of an option with.
type ValueKind int

const (
	NoValues        ValueKind = iota // numbers, patterns and texts: nothing can be offered
	WordValues                       // words that the option accepts
	FileValues                       // names of files and directories
	DirectoryValues                  // names of directories
	FoundValues                      // what Find looks up
)

// Values are the values that a shell can offer for an option.
type Values struct {
	Kind  ValueKind
	Words []string // of WordValues, in the order of the help; one that ends with a colon needs more text behind it
	List  bool     // several words are accepted, with commas in between
	Find  Finder   // of FoundValues
}

// A Finder looks up the values of an option that begin like a word, each with a tab in front of its description. load
// fills in settings by the flags that were given, the files and the environment.
type Finder func(load func(Settings), word string) []string

// ValuesOf returns what a shell can offer as the value of a flag of the command, by one of its long names.
func ValuesOf(s Settings, flag string) Values {
	opt, known := ByName(s.Table(), flag)
	if !known {
		return Values{}
	}
	switch {
	case opt.Find != nil:
		return Values{Kind: FoundValues, Find: opt.Find}
	case opt.Words == nil:
		return Values{Kind: opt.Offers}
	}
	return Values{Kind: WordValues, Words: opt.Words, List: opt.Several}
}

// Exclusive returns sets of flags of the command: each set excludes all but one of its flags.
func Exclusive(s Settings) (sets [][]string) {
	table := s.Table()
	for _, opt := range table {
		if opt.Alias != "" {
			sets = append(sets, opt.Names())
		}
	}
	for _, opt := range table {
		for _, other := range opt.Excludes {
			if _, known := ByName(table, other); known {
				sets = append(sets, []string{opt.Name, other})
			}
		}
	}
	return sets
}

// Texts returns the words of a type of their own.
func Texts[T ~string](words ...T) []string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return texts
}
