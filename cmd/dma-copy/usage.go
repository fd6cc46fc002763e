package main

import (
	"fmt"
	"strconv"
	"strings"
)

// usageError says that the run was asked for wrongly: a bad flag, value, variable or parameter file. Its text is one
// sentence on one line with the cause and the next step, and the program ends with exit code 3.
type usageError struct {
	err error
}

// usagef makes a usageError; %w keeps the cause for errors.Is.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// Error returns the sentence. File names and parser messages may bring control characters along, so they are
// escaped here, once for all.
func (e usageError) Error() string { return escapeUnprintable(e.err.Error()) }

// Unwrap returns the error that carries the causes.
func (e usageError) Unwrap() error { return e.err }

// escapeUnprintable keeps a text on one line and away from the terminal's control codes.
func escapeUnprintable(text string) string {
	var safe strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			safe.WriteRune(r)
			continue
		}
		safe.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return safe.String()
}
