package quantity

import (
	"math"
	"testing"
	"time"
)

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0 B", 9: "9 B", 10: "10 B", 1023: "1023 B", 1024: "1.0 KiB", 1075: "1.0 KiB", 1280: "1.3 KiB",
		10188: "9.9 KiB", 10189: "10 KiB", 10752: "11 KiB", 95 << 20: "95 MiB", 3 << 29: "1.5 GiB",
		1<<20 - 1: "1024 KiB", 1 << 40: "1.0 TiB", math.MaxUint64: "16 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestComma(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", -999: "-999", 1000: "1,000", -123456: "-123,456",
		math.MaxInt64: "9,223,372,036,854,775,807",
		math.MinInt64: "-9,223,372,036,854,775,808",
	} {
		if got := Comma(n); got != want {
			t.Errorf("Comma(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		n    int64
		noun string
		want string
	}{
		{0, "file", "0 files"}, {1, "entry", "1 entry"}, {2, "entry", "2 entries"},
		{1234, "key", "1,234 keys"}, {2, "process", "2 processes"}, {2, "match", "2 matches"},
	} {
		if got := Count(c.n, c.noun); got != c.want {
			t.Errorf("Count(%d, %q) = %q, want %q", c.n, c.noun, got, c.want)
		}
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "just now", 999 * time.Millisecond: "just now", time.Second: "1 second ago",
		119 * time.Second: "1 minute ago", 2 * time.Hour: "2 hours ago", 47 * time.Hour: "1 day ago",
		20 * 24 * time.Hour: "2 weeks ago", 800 * 24 * time.Hour: "2 years ago",
	} {
		if got := Age(d); got != want {
			t.Errorf("Age(%s) = %q, want %q", d, got, want)
		}
	}
}

func TestRemaining(t *testing.T) {
	for _, c := range []struct {
		left int64
		rate float64
		want string
	}{
		{0, 1, "0s"}, {1, 1e9, "1s"}, {205, 1, "3m25s"}, {7200, 1, "2h0m0s"}, {99 * 3600, 1, "99h0m0s"},
		{99*3600 + 1, 1, "days"}, {math.MaxInt64, 1e-9, "days"}, {1, 0, "days"},
	} {
		if got := Remaining(c.left, c.rate); got != c.want {
			t.Errorf("Remaining(%d, %g) = %q, want %q", c.left, c.rate, got, c.want)
		}
	}
}
