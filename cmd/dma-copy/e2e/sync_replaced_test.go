package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/dma-copy/dma-copy/internal/identity"
)

// TestSyncOfReplacedDirectory replaces the source or the target of a sync --delete that is running. Nothing is deleted
// then: neither from what was copied nor from what is in its place. The key has a bandwidth at which no copy ends until
// everything has been replaced.
func TestSyncOfReplacedDirectory(t *testing.T) {
	t.Parallel()
	f := newDaemonFixture(t, "dpu")
	key, err := f.keys("host").Public()
	must(t, err)
	must(t, f.keys("dpu").Trust(identity.Grant{Name: "peer", Key: key, Bandwidth: 256 << 10}, true))
	d := f.serve("")
	var commands []func()
	for _, push := range []bool{true, false} {
		for _, replace := range []string{"source", "target"} {
			name := fmt.Sprintf("%s-%t", replace, push)
			source, target := f.local(name), f.share(name)
			line := fmt.Sprintf("host/%s :files/%s", name, name)
			if !push {
				source, target = target, source
				line = fmt.Sprintf(":files/%s host/%s", name, name)
			}
			must(t, os.Mkdir(source, 0o755))
			must(t, os.Mkdir(target, 0o755))
			must(t, os.WriteFile(source+"/large", make([]byte, 32<<20), 0o644)) // takes minutes
			must(t, os.WriteFile(target+"/extra", nil, 0o644))
			command := f.command("sync --quiet --delete --chunk 64KiB --sparse never " + line)
			for len(namesIn(t, target)) < 2 && !command.hasEnded() { // until the copy has begun
				time.Sleep(5 * time.Millisecond)
			}
			moved := map[string]string{"source": source, "target": target}[replace]
			must(t, os.Rename(moved, moved+".moved"))
			must(t, os.Mkdir(moved, 0o755))
			must(t, os.WriteFile(moved+"/precious", nil, 0o644))
			commands = append(commands, func() {
				command.expectExit(exitSourceChanged)
				command.expectStderr("nothing is deleted: ")
				command.expectStderr("was moved or replaced during the copy")
				copied := target
				if replace == "target" {
					copied += ".moved"
				}
				for _, kept := range []string{moved + "/precious", copied + "/large", copied + "/extra"} {
					if _, err := os.Stat(kept); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	f.trust("dpu", key) // without a limit
	d.reload(1)
	for _, expect := range commands {
		expect()
	}
	d.stop()
}
