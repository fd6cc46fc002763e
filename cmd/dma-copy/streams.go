package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// streams is the program's surroundings, as a value so that tests can stand in for them.
type streams struct {
	stdout   io.Writer
	stderr   io.Writer
	terminal bool                             // stderr is a terminal
	env      func(name string) (string, bool) // as os.LookupEnv
}

func standardStreams() streams {
	return streams{
		stdout:   os.Stdout,
		stderr:   os.Stderr,
		terminal: term.IsTerminal(int(os.Stderr.Fd())),
		env:      os.LookupEnv,
	}
}

// variable returns an environment variable; an empty one counts as not set, as NO_COLOR's convention has it too.
func (s streams) variable(name string) (string, bool) {
	value, _ := s.env(name)
	return value, value != ""
}
