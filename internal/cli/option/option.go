package option

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Option is one thing that a command can be told, bound to the field of the settings that takes its value. Flags, keys
// of the parameter file, environment variables, defaults and help all follow from the tables of options.
type Option struct {
	Group      Group
	Name       string // long flag, key of the parameter file, and stem of the variable
	Short      string // one letter, or empty
	Alias      string // second long name with the same meaning, or empty
	AliasShort string // one letter for the alias
	Value      string // placeholder of the value in the help; empty for a switch, and where it is the words
	Default    string // the default, spelled as on the command line; empty: none
	Bare       string // the value of the flag without one; empty: it needs one, unless it is a switch
	JSON       JSONShape
	Words      []string                // that the value may be; nil: any text
	Several    bool                    // the value is a list of such words, with commas
	Offers     ValueKind               // what a shell completes the value with, where it is no word
	Find       Finder                  // the same where it has to be looked up; may be nil
	List       string                  // list that the option appends to, maybe with others; empty: a single value
	Assign     func(text string) error // sets the field that the option is bound to, or appends to it
	Help       string
	Topic      Topic
	Everyday   bool     // also in the short help
	Hidden     bool     // for developers of the program: not in the help, and never suggested
	FlagOnly   bool     // neither a file nor the environment has it
	Excludes   []string // options that cannot be given with it
}

// Group is the group of the parameter file that an option belongs to, and who else has the option.
type Group int

const (
	DOCAFlags    Group = iota // general flags that every DOCA program has
	ProgramFlags              // flags of DOCA's own DMA copy program
	AddedFlags                // flags that only this program has
	NativeFlags               // and the flags among them that it needs on both sides
	ServeFlags                // flags that only the daemon has
)

// Topic is the block of the help that an option belongs to, unless it is an everyday one.
type Topic int

// The topics in the order of the help.
const (
	TopicCommand Topic = iota // what only this command does
	TopicTrees
	TopicIntegrity
	TopicLimits
	TopicOutput
	TopicTrust
	TopicDevice
	TopicNetwork
	topics // their number
)

// String returns the title of the topic.
func (t Topic) String() string {
	return [topics]string{
		"More Flags", "Files and Trees", "Integrity", "Limits and Timeouts", "Output and Log", "Keys and Trust",
		"Device", "Other Machines",
	}[t]
}

// About returns the options with the topic.
func About(topic Topic, list ...Option) []Option {
	for i := range list {
		list[i].Topic = topic
	}
	return list
}

// In returns the option with the topic.
func (o Option) In(topic Topic) Option {
	o.Topic = topic
	return o
}

// Everyday returns an option that is in the short help, too.
func Everyday(o Option) Option {
	o.Everyday = true
	return o
}

// JSONShape is the JSON types that an option accepts in the parameter file.
type JSONShape struct {
	kinds  string // the accepted kinds, each by its first byte as hujson.Kind has it
	wanted string // the same for an error
}

var (
	JSONNone   = JSONShape{} // command line only
	JSONText   = JSONShape{`"`, "a string"}
	JSONNumber = JSONShape{`0"`, "a number or a string"}
	JSONSwitch = JSONShape{`tf`, "true or false"}
	JSONForced = JSONShape{`tf"`, `true, false or "force"`}
	JSONList   = JSONShape{`"[`, "a string or an array of strings"}
)

// Commands are the settings of all commands, which share one parameter file and the environment. Where several have an
// option of one name, the first one counts.
type Commands []Settings

// table returns the options of all commands but those that a command keeps for itself.
func (c Commands) table() []Option {
	var table []Option
	for _, s := range c {
		for _, opt := range blank(s).Table() {
			if _, known := ByName(table, opt.Name); !known && !opt.isPrivate() {
				table = append(table, opt)
			}
		}
	}
	return table
}

// grouped is implemented by settings that have a group of the parameter file of their own.
type grouped interface {
	Settings
	FileGroup() string
	Validate() error // checks the settings against each other
}

// owner returns the settings that have the group of this name, which one command has.
func (c Commands) owner(group string) Settings {
	return c[slices.IndexFunc(c, func(s Settings) bool {
		of, is := s.(grouped)
		return is && of.FileGroup() == group
	})]
}

// blank returns a copy of settings that have not been loaded, so that values can be tried without an effect.
func blank(s Settings) Settings {
	of := reflect.ValueOf(s).Elem()
	tried := reflect.New(of.Type())
	tried.Elem().Set(of)
	return tried.Interface().(Settings)
}

// isPrivate reports whether an option of this name means something else in the file and the environment.
func (o Option) isPrivate() bool { return o.FlagOnly && o.JSON != JSONNone }

// Switch is an option without a value, which is off by default.
func Switch(group Group, name string, on *bool, help string) Option {
	return Option{
		Group: group, Name: name, Default: "false", JSON: JSONSwitch, Assign: Into(on, ParseSwitch), Help: help,
	}
}

// Choice is an option whose value is one of some words.
func Choice[T ~string](group Group, name string, choice *T, fallback T, help string, words ...T) Option {
	return Option{
		Group: group, Name: name, Default: string(fallback), JSON: JSONText, Words: Texts(words...),
		Assign: Into(choice, ParseOneOf(words...)), Help: help,
	}
}

// Either is an option whose value is one of two words: the default, and the one that sets the field.
func Either(group Group, name string, field *bool, unset, set, help string) Option {
	opt := Choice(group, name, new(string), unset, help, unset, set)
	parse := ParseOneOf(unset, set)
	opt.Assign = Into(field, func(text string) (bool, error) {
		word, err := parse(text)
		return word == set, err
	})
	return opt
}

// Count is an option whose value is a whole number between two limits.
func Count[T int | int64 | uint32](
	group Group, name string, count *T, fallback string, least, most T, help string,
) Option {
	return Option{
		Group: group, Name: name, Value: "COUNT", Default: fallback, JSON: JSONNumber,
		Assign: Into(count, ParseCount(least, most)), Help: help,
	}
}

// Size is an option whose value is a number of bytes.
func Size(group Group, name string, size *int64, fallback, help string) Option {
	return Option{
		Group: group, Name: name, Value: "SIZE", Default: fallback, JSON: JSONNumber, Assign: Into(size, ParseSize),
		Help: help,
	}
}

// Rate is an option whose value is a number of bytes per second.
func Rate(group Group, name string, rate *int64, fallback, help string) Option {
	opt := Size(group, name, rate, fallback, help)
	opt.Value, opt.Assign = "RATE", Into(rate, ParseRate)
	return opt
}

// Duration is an option whose value is a duration that a parser accepts.
func Duration(
	group Group, name string, duration *time.Duration, fallback string,
	parse func(string) (time.Duration, error), help string,
) Option {
	opt := Text(group, name, "DURATION", duration, parse, help)
	opt.Default = fallback
	return opt
}

// Text is an option whose value is a text that parse turns into the field's value; value stands for it in the help.
func Text[T any](
	group Group, name, value string, field *T, parse func(string) (T, error), help string,
) Option {
	return Option{Group: group, Name: name, Value: value, JSON: JSONText, Assign: Into(field, parse), Help: help}
}

// File is an option whose value is the path of a file.
func File(group Group, name, value string, path *string, help string) Option {
	opt := Text(group, name, value, path, ParsePath, help)
	opt.Offers = FileValues
	return opt
}

// Directory is an option whose value is the path of a directory.
func Directory(group Group, name string, path *string, help string) Option {
	opt := File(group, name, "DIR", path, help)
	opt.Offers = DirectoryValues
	return opt
}

// WithLetter returns an option that also has a short name.
func WithLetter(letter string, o Option) Option {
	o.Short = letter
	return o
}

// NoEffect is a flag that fingers type, without an effect here; help says why.
func NoEffect(letter, name, help string) Option {
	o := WithLetter(letter, Switch(AddedFlags, name, new(bool), help))
	o.FlagOnly = true
	return o
}

// WithoutLetter returns an option without its short name, which the command has for something else.
func WithoutLetter(o Option) Option {
	o.Short = ""
	return o
}

// FlagsOnly returns options that neither a file nor the environment has.
func FlagsOnly(list ...Option) []Option {
	for i := range list {
		list[i].FlagOnly = true
	}
	return list
}

// Into returns an assignment that parses a text and stores the result in field.
func Into[T any](field *T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err != nil {
			return err
		}
		*field = value
		return nil
	}
}

// Appending returns an assignment that parses a text and appends the result to field.
func Appending[T any](field *[]T, parse func(string) (T, error)) func(string) error {
	return func(text string) error {
		value, err := parse(text)
		if err != nil {
			return err
		}
		*field = append(*field, value)
		return nil
	}
}

// key returns the name under which the value of the option is merged: its list's name, or its own.
func (o Option) key() string { return cmp.Or(o.List, o.Name) }

// Names returns the long names of the option, the alias last.
func (o Option) Names() []string {
	if o.Alias == "" {
		return []string{o.Name}
	}
	return []string{o.Name, o.Alias}
}

// placeholder returns what stands for the value in the help, empty for a switch.
func (o Option) placeholder() string {
	if o.Value == "" && o.Words != nil {
		return strings.Join(o.Words, "|")
	}
	return o.Value
}

// IsSwitch reports whether the option needs no value.
func (o Option) IsSwitch() bool { return o.JSON == JSONSwitch || o.JSON == JSONForced }

// ByName returns an option by its name or its alias.
func ByName(table []Option, name string) (Option, bool) {
	for i := range table { // without a copy of each option, which is large
		if name == table[i].Name || name == table[i].Alias && name != "" {
			return table[i], true
		}
	}
	return Option{}, false
}

// VariableName returns the environment variable of a long name: DMA_COPY_PCI_ADDR for pci-addr.
func VariableName(name string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
