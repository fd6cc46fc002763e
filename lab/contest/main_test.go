package contest

import (
	"os"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == testServer {
		os.Exit(beTestServer(os.Args[2], os.Args[3]))
	}
	docatest.Main(m)
}
