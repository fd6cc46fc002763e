package native

import (
	"strings"
	"testing"

	"github.com/dma-copy/dma-copy/internal/dmaxfer/disk/disktest"
)

// Files whose change time moves while they are read, and nothing else, are the same.
func TestSourceIsTouched(t *testing.T) {
	from, to := disktest.NewMemory("/", "/src"), newTarget()
	from.Put("/src/small", "content")
	from.Put("/src/large", strings.Repeat("content", 5000))
	from.Without(disktest.Lacking{Local: true})
	m := newMeeting(t, from, to)
	m.mustSucceed()
	from.Without(disktest.Lacking{})
	m.mustHaveSame()
}
