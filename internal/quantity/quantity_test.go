package quantity

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	sizes := map[string]int64{
		"0": 0, "65536": 65536, "1B": 1, "1K": 1 << 10, "1kib": 1 << 10, "1KB": 1000, "256KiB": 256 << 10,
		"1.5GiB": 3 << 29, "0.5M": 1 << 19, "0.5k": 512, "1.5MB": 1_500_000, "2.50K": 2560, "1.0": 1, "1.0b": 1,
		"1T": 1 << 40, "0.0009765625K": 1, "9223372036854775807": math.MaxInt64, "8388607.5T": 0x7FFFFF8000000000,
		"0.000000000001TB": 1,
		"8388607.9999999999990905052982270717620849609375T": math.MaxInt64,
	}
	for text, want := range sizes {
		if got, err := ParseSize(text); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	refusals := map[error]string{
		ErrSyntax: "_ x K .5K 1. 1..5K 1.2.3 01 00 007K -1 +1 1e3 1KK 1KiBB 1Ki 1P 1EiB 0x10 1,5K 1/2K ½K ٣ " +
			strings.Repeat("0", 65) + " 1." + strings.Repeat("0", 70),
		ErrFraction: "1.5 0.1K 1.5B 1.0001KB 0.00048828125K 0.0000000000001TB",
		ErrRange:    "9223372036854775808 8388608T 99999999999999999999999999 1" + strings.Repeat("0", 70),
	}
	for want, texts := range refusals {
		for text := range strings.FieldsSeq(texts) {
			if got, err := ParseSize(strings.Trim(text, "_")); got != 0 || !errors.Is(err, want) {
				t.Errorf("ParseSize(%q) = %d, %v; want the error %v", text, got, err, want)
			}
		}
	}
}

func TestParseDuration(t *testing.T) {
	const day = 24 * time.Hour
	durations := map[string]time.Duration{
		"0": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "-1.5h": -90 * time.Minute, "+2s": 2 * time.Second,
		"1d": day, "1.5d": 36 * time.Hour, "2d12h": 60 * time.Hour, "12h2d": 60 * time.Hour, "1w": 7 * day,
		"1w2d3h4m5s6ms7us8ns": 9*day + 3*time.Hour + 4*time.Minute + 5*time.Second + 6007008,
		"-1d":                 -day, "+1d": day, "0d": 0, ".5d": 12 * time.Hour, "1d500µs": day + 500*time.Microsecond,
		"106751d": 106751 * day, "0.1d": 144 * time.Minute, "-0.5w": -84 * time.Hour,
	}
	for text, want := range durations {
		if got, err := ParseDuration(text); got != want || err != nil {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	refusals := map[error]string{
		ErrSyntax: "_ 1 d w 1dd 1D 1W d1 1d-1h 1d+1h --1d 1d1 1.2.3d 1y 1day - -d 1,5d 1x",
		ErrRange:  "106752d 15251w 9999999999h 106751d24h 99999999999999999999d -106752d 1d9999999999h 9999999999h1ns",
	}
	for want, texts := range refusals {
		for text := range strings.FieldsSeq(texts) {
			if got, err := ParseDuration(strings.Trim(text, "_")); got != 0 || !errors.Is(err, want) {
				t.Errorf("ParseDuration(%q) = %v, %v; want the error %v", text, got, err, want)
			}
		}
	}
}

func TestParseMoment(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]Moment{
		"0": {}, "0s": {}, "36h": {Age: 36 * time.Hour}, "7d": {Age: 7 * 24 * time.Hour},
		"2026-01-31T12:00:00Z": {Time: noon}, "2026-01-31T13:00:00+01:00": {Time: noon},
		"2026-01-31T12:00:00.5Z": {Time: noon.Add(time.Second / 2)},
		"2026-01-31":             {Time: time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local)},
	} {
		got, err := ParseMoment(text)
		if err != nil || got.Age != want.Age || !got.Time.Equal(want.Time) {
			t.Errorf("ParseMoment(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"": ErrSyntax, "-1h": ErrSyntax, "yesterday": ErrSyntax, "2026-02-30": ErrSyntax, "2026-01-31 12:00": ErrSyntax,
		"1000-01-31": ErrRange, "999999d": ErrRange,
	} {
		if got, err := ParseMoment(text); !errors.Is(err, want) {
			t.Errorf("ParseMoment(%q) = %v, %v; want the error %v", text, got, err, want)
		}
	}
	if got := (Moment{Age: time.Hour}).From(noon); !got.Equal(noon.Add(-time.Hour)) {
		t.Errorf("an hour before noon is %s", got)
	}
}

// Whatever is accepted is the exact product of its number and its unit, and a whole number is accepted as printed.
func FuzzParseSize(f *testing.F) {
	for _, text := range []string{"1.5GiB", "0.5M", "1kB", "8388607.5T", "0.1K", "x", "-1"} {
		f.Add(text, int64(1))
	}
	f.Fuzz(func(t *testing.T, text string, whole int64) {
		if got, err := ParseSize(text); err == nil {
			number, unit := splitNumber(text)
			want, ok := new(big.Rat).SetString(number)
			want.Mul(want, big.NewRat(scales[strings.ToLower(unit)], 1))
			if !ok || got < 0 || want.Cmp(big.NewRat(got, 1)) != 0 {
				t.Errorf("ParseSize(%q) = %d", text, got)
			}
		}
		got, err := ParseSize(strconv.FormatInt(whole, 10))
		if whole >= 0 && (got != whole || err != nil) || whole < 0 && err == nil {
			t.Errorf("ParseSize(%d) = %d, %v", whole, got, err)
		}
	})
}

// Without days and weeks the parser is that of package time; with days it adds them.
func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"1d", "2d12h", "1.5w", "-3h", "106751d", "9999999999h", "1h30m", "x"} {
		f.Add(text, uint16(3))
	}
	f.Fuzz(func(t *testing.T, text string, days uint16) {
		got, err := ParseDuration(text)
		plain, plainErr := time.ParseDuration(text)
		if !strings.ContainsAny(text, "dw") && ((err == nil) != (plainErr == nil) || got != plain) {
			t.Errorf("ParseDuration(%q) = %v, %v; package time has %v, %v", text, got, err, plain, plainErr)
		}
		if plainErr != nil || text[0] == '-' || text[0] == '+' || text == "0" || plain > math.MaxInt64/2 {
			return
		}
		want := plain + time.Duration(days)*24*time.Hour
		if got, err := ParseDuration(fmt.Sprintf("%dd%s", days, text)); err != nil || got != want {
			t.Errorf("ParseDuration(%dd%s) = %v, %v; want %v", days, text, got, err, want)
		}
	})
}
