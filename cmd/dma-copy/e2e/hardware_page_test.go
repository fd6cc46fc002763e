package e2e

import (
	"testing"
)

// TestHardwarePageCommands runs the commands of docs/guide/hardware.md on the software device, as TestReadmeCommands
// does for README.md; a bench measures less. Commands that need a card have another prompt.
func TestHardwarePageCommands(t *testing.T) {
	t.Parallel()
	requireSoftwareDevice(t)
	session := newReadmeSession(t, "dma-copy bench", "dma-copy bench --chunks 64KiB --depths 2 --each 1ms")
	commands := 0
	for _, part := range readmePart.FindAllStringSubmatch(readFile(t, moduleRoot, "docs/guide/hardware.md"), -1) {
		panes := panesOf(part[1])
		session.run(t, panes)
		for _, p := range panes {
			commands += len(p.commands)
		}
	}
	if commands < 20 {
		t.Errorf("the page has %d commands only", commands)
	}
	source := readFile(t, session.dir, "image.bin")
	for _, name := range []string{"copy.bin", "inbox/image.bin"} {
		if readFile(t, session.dir, name) != source {
			t.Errorf("%s differs from image.bin", name)
		}
	}
}
