//go:build cgo

package service

import (
	"fmt"
	"time"

	"github.com/dma-copy/dma-copy/internal/negotiate"
	"github.com/dma-copy/dma-copy/internal/share"
)

// pushElsewhere pushes to a share that others use, too.
func (c *simClient) pushElsewhere(to, name string, variant int, overwrite bool) {
	at, began := negotiate.Place{Share: to, Path: name}, time.Now()
	m := c.current.Load()
	source := fmt.Sprintf("/home/public-%d", variant)
	_, err := m.Push(m.ctx, CopyRequest{Options: c.options(source, overwrite), Place: at})
	codes := []int{0, simDiffers, int(negotiate.AbortTarget)}
	if !c.access(to).Allows(share.Write) || to == "keep" && overwrite {
		codes = []int{int(negotiate.AbortRefused)}
	} else if c.tooLarge(publicText(c.number, variant)) {
		codes = []int{int(negotiate.AbortLimit)}
	}
	c.judge(Push, at, began, err, codes...)
	if err == nil && codes[0] != 0 {
		c.Errorf("client %d may push to %s", c.number, to)
	}
}

func (c *simClient) pullElsewhere(from, name string) {
	codes := []int{0, int(negotiate.AbortSource)}
	if c.grant.maxBytes > 0 {
		codes = append(codes, int(negotiate.AbortLimit))
	}
	if !c.access(from).Allows(share.Read) {
		codes = []int{int(negotiate.AbortRefused)}
	}
	text, err := c.pullFrom(from, name, codes...)
	if err == nil && (codes[0] != 0 || !isSimText(text, "public") || c.tooLarge(text)) {
		c.Errorf("client %d may pull %d bytes from %s", c.number, len(text), from)
	}
}

// removeElsewhere tries to remove what the client must not.
func (c *simClient) removeElsewhere(in, name string) {
	if c.access(in).Allows(share.Write) {
		in = "out"
	}
	at, began := negotiate.Place{Share: in}, time.Now()
	m := c.current.Load()
	err := m.Remove(m.ctx, removing(at, name), func(string, negotiate.Removal) error { return nil })
	c.judge(Remove, at, began, err, int(negotiate.AbortRefused))
	if err == nil {
		c.Errorf("client %d may remove in %s", c.number, in)
	}
}
