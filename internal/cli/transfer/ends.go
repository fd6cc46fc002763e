package transfer

import (
	"github.com/dma-copy/dma-copy/internal/share"
)

// Ends are both ends of one copy of push, pull or sync. Where it lands follows from the spelling of source and target
// alone: the same command means the same again, whatever the first run has created.
type Ends struct {
	Local     string
	Remote    share.Remote
	Directory bool // the source is meant by its content, so it has to be a directory
}
