package root

import (
	"os"
	"testing"
)

// A file's bytes are neither written to a terminal nor read from one.
func TestStreamsAreNoTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	if _, err := refuseIfTerminal(terminal, errStdoutIsTerminal, nil)(); err != errStdoutIsTerminal {
		t.Errorf("error %v, want %v", err, errStdoutIsTerminal)
	}
}
