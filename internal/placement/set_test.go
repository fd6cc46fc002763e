package placement

import (
	"testing"

	"pgregory.net/rapid"
)

func TestParseList(t *testing.T) {
	cases := []struct {
		text, canonical string
		count           int
	}{
		{"0", "0", 1},
		{"0-3,8", "0-3,8", 5},
		{"8,0-3", "0-3,8", 5},
		{"1,0,2,2-3", "0-3", 4},
		{"63-64", "63-64", 2},
		{"5-5", "5", 1},
		{"1023", "1023", 1},
		{"0-1023", "0-1023", 1024},
	}
	for _, tc := range cases {
		got, err := ParseList(tc.text)
		if err != nil || got.String() != tc.canonical || got.Count() != tc.count {
			t.Errorf("%q: %q with %d, error %v, want %q with %d", tc.text, got, got.Count(), err, tc.canonical,
				tc.count)
		}
	}
}

func TestParseListErrors(t *testing.T) {
	const (
		noList   = "not a list; give numbers and ranges with commas, such as 0-3,8"
		tooLarge = " is too large; give numbers below 1024"
	)
	for text, want := range map[string]string{
		"": noList, ",": noList, "0,": noList, "-": noList, "-1": noList, "1-": noList, "1-2-3": noList, "+1": noList,
		" 1":   noList,
		"0, 1": noList, "0x1": noList, "all": noList, "0-7:2": noList, "1.5": noList,
		"1024": "1024" + tooLarge, "0-1024": "1024" + tooLarge,
		"99999999999999999999": "99999999999999999999" + tooLarge,
		"3-1":                  "the range 3-1 is reversed; give the smaller number first, as in 1-3",
	} {
		if got, err := ParseList(text); err == nil || err.Error() != want || !got.Empty() {
			t.Errorf("%q: %q, error %v, want %q", text, got, err, want)
		}
	}
}

func TestSetOperations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfDistinct(rapid.IntRange(0, capacity-1), rapid.ID).Draw(t, "numbers")
		others := rapid.SliceOfDistinct(rapid.IntRange(0, capacity-1), rapid.ID).Draw(t, "others")
		set, other, both := setOf(numbers...), setOf(others...), 0
		for _, n := range numbers {
			if !set.IsSet(n) {
				t.Fatalf("%d is missing", n)
			}
			if other.IsSet(n) {
				both++
			}
		}
		if set.Count() != len(numbers) || set.Empty() != (len(numbers) == 0) {
			t.Fatalf("%d of %d", set.Count(), len(numbers))
		}
		if common := set.Intersect(other); common.Count() != both || common != other.Intersect(set) {
			t.Fatalf("%s and %s have %s in common", set, other, common)
		}
		if again, err := ParseList(set.String()); set.Empty() == (err == nil) || again != set {
			t.Fatalf("%s is read as %s (%v)", set, again, err)
		}
	})
}

func setOf(numbers ...int) Set {
	var s Set
	for _, n := range numbers {
		s.Set(n)
	}
	return s
}
