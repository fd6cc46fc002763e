package output

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/report"
	"github.com/dma-copy/dma-copy/internal/share"
)

var errGone error = &report.SideError{
	Side: wire.Host, Err: &service.Refusal{Code: wire.AbortSource, Text: "b does not exist"},
}

// everyChange reports an entry that was changed and one that was not.
func everyChange(c *Changes) {
	c.Changed(share.Remote{Share: "inbox", Path: "a\xff"}, nil)
	c.Changed(share.Remote{Share: "inbox", Path: "b"}, errGone)
}

// The exit code is that of the failures where all failed alike, and the only failure is printed once, by main.
func TestChanges(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Changes)
		code   int
		lines  int
		text   string
	}{
		{"nothing", func(*Changes) {}, 0, 0, ""},
		{"success", func(c *Changes) { c.Changed(share.Remote{}, nil) }, 0, 0, ""},
		{"some", everyChange, exit.SomeFailed, 1, "1 of 2 entries could not be removed"},
		{"the only one", func(c *Changes) { c.Changed(share.Remote{}, errGone) }, exit.Source, 0, "does not exist"},
		{"all", func(c *Changes) {
			c.Changed(share.Remote{}, errGone)
			c.Changed(share.Remote{}, errGone)
		}, exit.Source, 2, "2 of 2 entries could not be removed"},
		{"first", func(c *Changes) {
			c.Changed(share.Remote{}, errGone)
			c.Changed(share.Remote{}, nil)
		}, exit.SomeFailed, 1, "1 of 2 entries"},
	} {
		var stderr strings.Builder
		c := NewChanges(io.Discard, &stderr, "removed", option.OutputText, zerolog.Nop())
		test.change(c)
		err := c.End()
		if code := exit.Code(err); code != test.code || err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v (code %d)", test.name, err, code)
		}
		if lines := strings.Count(stderr.String(), "\n"); lines != test.lines {
			t.Errorf("%s: printed %q", test.name, stderr.String())
		}
	}
	c := NewChanges(fullDisk{}, io.Discard, "removed", option.OutputJSON, zerolog.Nop())
	everyChange(c)
	if err := c.End(); !errors.Is(err, c.events.failed) {
		t.Errorf("on a full disk: %v", err)
	}
}
