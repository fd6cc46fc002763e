// Package option turns flags, the environment and parameter files into the settings of a command.
//
// A command lists its options, each bound to a field of its settings. From that list follow flags, keys of the
// parameter file, variables, defaults, help, manual and completion. Precedence: flag, parameter file, environment, the
// file of the machine, default. This package knows no command, and alone imports viper. Its errors carry the exit code
// for usage.
package option

// Settings are the options of one command, after flags, the parameter file, the environment and the defaults have been
// merged and checked. Each command has a struct of its own. Nothing in it refers back to the origin of a value.
type Settings interface {
	// Table returns the table of the command, bound to the fields of the struct.
	Table() []Option

	// Log returns how the program logs.
	Log() *Logging
}

// Stream is the FILE that stands for stdin or stdout.
const Stream = "-"

// ParameterFile names the parameter file, which is read before all others are merged.
func ParameterFile() Option { return ParameterFileInto(new(string)) }

// ParameterFileInto is ParameterFile of a command that also wants to know its path.
func ParameterFileInto(path *string) Option {
	return Option{
		Group: DOCAFlags, Topic: TopicOutput, Name: "json", Short: "j", Value: "FILE", Offers: FileValues,
		JSON: JSONNone, Assign: Into(path, ParsePath),
		Help: "Parameter file in DOCA's JSON form; may have comments and trailing commas",
	}
}

// OutputForm is the format of a command's output.
type OutputForm string

const (
	OutputText OutputForm = "text"
	OutputJSON OutputForm = "json"
)

// Output is -o of the commands that write text or JSON; help says what is written, and where.
func Output(form *OutputForm, help string) Option {
	output := Choice(AddedFlags, "output", form, OutputText, help, OutputText, OutputJSON)
	return Everyday(WithLetter("o", output)).In(TopicOutput)
}

// Quiet is -q; help says what is left out. It also makes the default levels of the logs ERROR.
func Quiet(quiet *bool, help string) Option {
	return Everyday(WithLetter("q", Switch(AddedFlags, quietName, quiet, help))).In(TopicOutput)
}

// General holds the settings of commands that have no others.
type General struct {
	Logging
}

// Table implements Settings.
func (s *General) Table() []Option { return append(s.LogOptions(), ParameterFile()) }
