package comch_test

import (
	"os"
	"testing"

	"github.com/dma-copy/dma-copy/internal/doca/docatest"
)

// childDir in the environment makes the test program a host that connects and waits to be killed.
const childDir = "COMCH_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		connectAndWait(dir)
	}
	docatest.Main(m)
}
