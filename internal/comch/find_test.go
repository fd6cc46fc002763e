package comch

import (
	"testing"
	"testing/synctest"
	"time"
)

// waited returns how long a Finder waits for each of its next attempts, in virtual time.
func waited(t *testing.T, f *Finder, attempts int) (lengths []time.Duration) {
	t.Helper()
	for range attempts {
		began := time.Now()
		if err := f.wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		lengths = append(lengths, time.Since(began))
	}
	return lengths
}

// A Finder tries often at first and after RetrySoon, and in the end once in an interval.
func TestFinderRhythm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFinder(nil, "")
		for range 2 {
			soon := waited(t, f, 10)
			if soon[0] != 0 || soon[1] > 2*firstRetry || soon[9] > 100*time.Millisecond {
				t.Errorf("the first attempts follow after %s", soon)
			}
			for _, late := range waited(t, f, 20)[10:] {
				if late < FindInterval*7/8 || late > FindInterval*9/8 {
					t.Errorf("a late attempt follows after %s", late)
				}
			}
			f.RetrySoon()
			f.RetrySoon()
		}
	})
}

// RetrySoon ends a long wait, whose interval may have become shorter.
func TestFinderHurriesWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, interval := NewFinder(nil, ""), 10*time.Second
		f.Interval = func() time.Duration { return interval }
		f.pause = interval
		time.AfterFunc(time.Second, f.RetrySoon)
		if got := waited(t, f, 1)[0]; got != time.Second {
			t.Errorf("it waited %s", got)
		}
		interval = time.Millisecond
		waited(t, f, 1)
		if got := waited(t, f, 1)[0]; got > 2*time.Millisecond {
			t.Errorf("it waited %s", got)
		}
	})
}
