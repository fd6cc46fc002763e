package placement

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// capacity is the number of CPUs that a Set can have.
const capacity = 1024

// Set is a set of CPUs, or of NUMA nodes, by their numbers from 0 to 1023. The zero Set is empty; sets can be compared
// with ==.
type Set struct{ unix.CPUSet }

// ParseList parses the kernel's list format: numbers and ranges separated by commas, "0-3,8", in any order. The empty
// text is an error. Errors say what is wrong and what to give instead.
func ParseList(text string) (Set, error) {
	var s Set
	for part := range strings.SplitSeq(text, ",") {
		first, last, err := parseRange(part)
		if err != nil {
			return Set{}, err
		}
		for n := first; n <= last; n++ {
			s.Set(n)
		}
	}
	return s, nil
}

func parseRange(text string) (first, last int, err error) {
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	if first, err = parseNumber(from); err != nil {
		return 0, 0, err
	}
	if last, err = parseNumber(to); err != nil {
		return 0, 0, err
	}
	if first > last {
		return 0, 0, fmt.Errorf("the range %s is reversed; give the smaller number first, as in %d-%d",
			quote.Bare(text), last, first)
	}
	return first, last, nil
}

func parseNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && n >= capacity {
		return 0, fmt.Errorf("%s is too large; give numbers below %d", quote.Bare(text), capacity)
	}
	if err != nil {
		return 0, errors.New("not a list; give numbers and ranges with commas, such as 0-3,8")
	}
	return int(n), nil
}

// String writes the set in the format that ParseList reads, ascending and as short as it goes; "" if it is empty.
func (s Set) String() string {
	var parts []string
	for first := 0; first < capacity; first++ {
		if !s.IsSet(first) {
			continue
		}
		last := first
		for s.IsSet(last + 1) {
			last++
		}
		parts = append(parts, rangeText(first, last))
		first = last
	}
	return strings.Join(parts, ",")
}

func rangeText(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// Empty reports whether the set is empty.
func (s Set) Empty() bool { return s == Set{} }

// Intersect returns the numbers that are in both sets.
func (s Set) Intersect(other Set) Set {
	for i := range s.CPUSet {
		s.CPUSet[i] &= other.CPUSet[i]
	}
	return s
}
