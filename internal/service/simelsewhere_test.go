//go:build cgo

package service

import (
	"fmt"
	"time"

	protocol "github.com/dma-copy/dma-copy/internal/negotiate/service"
	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
	"github.com/dma-copy/dma-copy/internal/share"
)

// pushElsewhere pushes to a share that others use, too.
func (c *simClient) pushElsewhere(to, name string, variant int, overwrite bool) {
	at, began := protocol.Place{Share: to, Path: name}, time.Now()
	m := c.current.Load()
	source := fmt.Sprintf("/home/public-%d", variant)
	_, err := m.Push(m.ctx, CopyRequest{Options: c.options(source, overwrite), Place: at})
	codes := []int{0, simDiffers, int(wire.AbortTarget)}
	if !c.access(to).Allows(share.Write) || to == "keep" && overwrite {
		codes = []int{int(wire.AbortRefused)}
	} else if c.tooLarge(publicText(c.number, variant)) {
		codes = []int{int(wire.AbortLimit)}
	}
	c.judge(Push, at, began, err, codes...)
	if err == nil && codes[0] != 0 {
		c.Errorf("client %d may push to %s", c.number, to)
	}
}

func (c *simClient) pullElsewhere(from, name string) {
	codes := []int{0, int(wire.AbortSource)}
	if c.grant.maxBytes > 0 {
		codes = append(codes, int(wire.AbortLimit))
	}
	if !c.access(from).Allows(share.Read) {
		codes = []int{int(wire.AbortRefused)}
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
	at, began := protocol.Place{Share: in}, time.Now()
	m := c.current.Load()
	err := m.Remove(m.ctx, removing(at, name), func(string, protocol.Removal) error { return nil })
	c.judge(Remove, at, began, err, int(wire.AbortRefused))
	if err == nil {
		c.Errorf("client %d may remove in %s", c.number, in)
	}
}
