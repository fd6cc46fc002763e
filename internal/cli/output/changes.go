package output

import (
	"errors"
	"io"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

// Changes writes what mkdir or rm has done: as text, failures only, on stderr, or as JSON lines on stdout. It is used
// by one goroutine at a time.
type Changes struct {
	events   *Events // nil: as text
	stderr   io.Writer
	action   string // "created" or "removed"
	tried    int
	failures []error
}

// NewChanges returns the Changes that the settings ask for.
func NewChanges(stdout, stderr io.Writer, action string, form option.OutputForm, log zerolog.Logger) *Changes {
	return &Changes{events: NewEvents(stdout, form, log), stderr: stderr, action: action}
}

// Begin is called when the daemon is known.
func (c *Changes) Begin(path report.Path) {
	c.events.Write("hello", helloOf(path, "service", 0, path.Peer.Software))
}

// changeEvent is a file, directory or symlink of a share that was created or removed, or was not.
type changeEvent struct {
	FileName
	Remote  string `json:"remote"`
	Action  string `json:"action"`
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Changed is called for each entry, with the error if it could not be changed. The error of the only one is the error
// of the command, which prints it.
func (c *Changes) Changed(at share.Remote, err error) {
	if c.tried++; c.tried == 2 && len(c.failures) == 1 && c.events == nil {
		report.WriteError(c.stderr, c.failures[0])
	}
	if err != nil {
		c.failures = append(c.failures, err)
	}
	switch {
	case c.events != nil:
		event := changeEvent{FileName: NameInEvent(at.Path), Remote: at.String(), Action: c.action}
		if err != nil {
			event.Action, event.Code, event.Message = "failed", exit.Code(err), report.Sentence(err)
		}
		c.events.Write("change", event)
	case err != nil && c.tried > 1:
		report.WriteError(c.stderr, err)
	}
}

// End returns the error of all changes together.
func (c *Changes) End() error {
	unwritten := c.events.Unwritten("print the events")
	switch {
	case len(c.failures) == 0:
		return unwritten
	case c.tried == 1:
		return c.failures[0]
	}
	return errors.Join(unwritten, exit.Errorf(report.CommonCode(c.tried, c.failures), "see the errors above",
		"%d of %d entries could not be %s", len(c.failures), c.tried, c.action))
}

// Fail writes the error of a run as an event.
func (c *Changes) Fail(err error) { c.events.Fail(err) }
