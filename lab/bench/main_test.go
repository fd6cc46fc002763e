package bench

import (
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

func TestMain(m *testing.M) { docatest.Main(m) }
