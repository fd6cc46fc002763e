package copying

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/dmaxfer"
)

// Without root --preserve all preserves what a user can, with one warning.
func TestPreserveAllAsUser(t *testing.T) {
	for uid, warnings := range map[int]int{0: 0, 1000: 1} {
		var s Settings
		if err := s.assignPreserved("all"); err != nil {
			t.Fatal(err)
		}
		var o dmaxfer.Options
		o.Owner, o.Xattrs, o.HardLinks, o.Privileged = true, true, true, true
		if s.Options.Owner != o.Owner || s.Options.Xattrs != o.Xattrs || s.Options.HardLinks != o.HardLinks ||
			s.Options.Privileged != o.Privileged {
			t.Errorf("all is %+v", s.Options)
		}
		var log bytes.Buffer
		PreserveAsUser(&o, uid, zerolog.New(&log))
		isRoot := uid == 0
		if o.Owner != isRoot || o.Privileged != isRoot || !o.Xattrs || !o.HardLinks {
			t.Errorf("user %d preserves %+v", uid, o)
		}
		if got := strings.Count(log.String(), "--preserve all needs root"); got != warnings {
			t.Errorf("user %d is warned %d times: %s", uid, got, &log)
		}
	}
}
