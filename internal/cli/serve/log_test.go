package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/service"
)

// A request that has failed is a warning. Commands look for single entries many times, which is for DEBUG only, and a
// dry run says that it is one.
func TestLevelsOfRequests(t *testing.T) {
	for name, test := range map[string]struct {
		record service.Record
		level  string
		dryRun any
	}{
		"list":        {service.Record{Operation: service.List}, "info", nil},
		"lookup":      {service.Record{Operation: service.List, Lookup: true}, "debug", nil},
		"failed":      {service.Record{Operation: service.List, Lookup: true, Err: errors.New("no")}, "warn", nil},
		"push":        {service.Record{Operation: service.Push}, "info", nil},
		"dry run":     {service.Record{Operation: service.Push, DryRun: true}, "info", true},
		"dry, failed": {service.Record{Operation: service.Pull, DryRun: true, Err: errors.New("no")}, "warn", true},
	} {
		var out bytes.Buffer
		(&sessionLog{log: zerolog.New(&out), stdout: &out}).Ended(test.record)
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v: %s", name, err, &out)
		}
		if line["level"] != test.level || line["dry_run"] != test.dryRun {
			t.Errorf("%s: %s", name, &out)
		}
	}
}
