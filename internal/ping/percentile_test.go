package ping

import (
	"testing"
	"time"
)

func TestSummarize(t *testing.T) {
	for name, test := range map[string]struct {
		count            int
		min, median, p99 time.Duration
	}{
		"one":          {1, 1, 1, 1},
		"two":          {2, 1, 1, 2},
		"three":        {3, 1, 2, 3},
		"a hundred":    {100, 1, 50, 99},
		"two hundreds": {200, 1, 100, 198},
	} {
		var trips []time.Duration
		for i := range test.count {
			trips = append(trips, time.Duration(test.count-i))
		}
		got := Summarize(trips)
		want := Summary{Count: test.count, Min: test.min, Median: test.median, P99: test.p99}
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
