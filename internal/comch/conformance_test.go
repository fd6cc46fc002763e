package comch_test

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/comch"
	"github.com/dma-copy/dma-copy/internal/comch/comchtest"
)

var (
	testConn      = comchtest.TestConn
	patient       = comchtest.Patient
	mustSend      = comchtest.MustSend
	mustReceive   = comchtest.MustReceive
	mustBe        = comchtest.MustBe
	mustClose     = comchtest.MustClose
	mustHaveEnded = comchtest.MustHaveEnded

	errEnough = comchtest.ErrEnough
)

func TestPipeConforms(t *testing.T) {
	comchtest.TestConnInMemory(t, func(*testing.T) (host, dpu comch.Conn) { return comch.Pipe(4080) })
}

// Tests of other packages use the pair in memory as a connection, so it has to be one.
func TestPairInMemoryConforms(t *testing.T) {
	comchtest.TestConnInMemory(t, func(*testing.T) (host, dpu comch.Conn) {
		return comchtest.NewPair(4080, comchtest.Faultless, comchtest.Faultless)
	})
}
