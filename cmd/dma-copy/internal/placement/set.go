package placement

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

const (
	capacity = 8192 // the most CPUs that Linux can be built for
	wordSize = 64
)

// Set is a set of CPUs, or of NUMA nodes, by their numbers from 0 to 8191. The zero Set is empty; sets can be compared
// with ==.
type Set [capacity / wordSize]uint64

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
			s.add(n)
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
		if !s.Has(first) {
			continue
		}
		last := first
		for s.Has(last + 1) {
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

// Has reports whether the set has a number; it has none outside 0 to 8191.
func (s Set) Has(n int) bool {
	return n >= 0 && n < capacity && s[n/wordSize]&(1<<(n%wordSize)) != 0
}

// Empty reports whether the set is empty.
func (s Set) Empty() bool { return s == Set{} }

// Count returns the number of elements.
func (s Set) Count() int {
	count := 0
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	return count
}

// Intersect returns the numbers that are in both sets.
func (s Set) Intersect(other Set) Set {
	for i := range s {
		s[i] &= other[i]
	}
	return s
}

// add puts a number below capacity into the set.
func (s *Set) add(n int) { s[n/wordSize] |= 1 << (n % wordSize) }
