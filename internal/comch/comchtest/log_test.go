package comchtest

import (
	"fmt"
	"strings"
	"testing"
)

// recordedTest is a test that has failed or not, and keeps what it prints.
type recordedTest struct {
	testing.TB
	failed  bool
	cleanup func()
	printed string
}

func (r *recordedTest) Failed() bool            { return r.failed }
func (r *recordedTest) Cleanup(f func())        { r.cleanup = f }
func (r *recordedTest) Logf(f string, a ...any) { r.printed += fmt.Sprintf(f, a...) }

// A test prints the last lines of a log if it fails, and nothing otherwise.
func TestLogOnFailure(t *testing.T) {
	for _, failed := range []bool{false, true} {
		r := &recordedTest{failed: failed}
		log := LogOnFailure(r, "daemon")
		for i := range loggedLines + 2 {
			log.Debug().Int("number", i).Msg("event")
			log.Trace().Msg("detail")
		}
		r.cleanup()
		first := "log of the daemon, after 2 other lines:\n" + `{"level":"debug","number":2,"message":"event"}`
		printed := strings.HasPrefix(r.printed, first) && strings.Count(r.printed, "event") == loggedLines &&
			!strings.Contains(r.printed, "detail")
		if printed != failed || !failed && r.printed != "" {
			t.Errorf("failed %t: it prints\n%s", failed, r.printed)
		}
	}
}
