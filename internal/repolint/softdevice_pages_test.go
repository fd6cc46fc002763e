package repolint

import (
	"strings"
	"testing"
)

// TestPagesUseASoftwareDeviceOfTheirOwn checks that instructions and demonstrations that select the software device
// name its runtime directory, too. In the default one they could meet another copy of the same user.
func TestPagesUseASoftwareDeviceOfTheirOwn(t *testing.T) {
	found := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "softdoca/docs/*.md", "scripts/*.sh"} {
		for _, file := range glob(t, pattern) {
			blocks := []string{readFile(t, file)}
			if strings.HasSuffix(file, ".md") {
				blocks = fencedBlock.FindAllString(blocks[0], -1)
			}
			for _, block := range blocks {
				if !strings.Contains(block, "DMA_COPY_DRIVER=soft") {
					continue
				}
				found++
				if !strings.Contains(block, "DMA_COPY_SOFT_DIR=") {
					t.Errorf("%s uses the software device without DMA_COPY_SOFT_DIR:\n%s", file, block)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d instructions use the software device", found)
	}
}
