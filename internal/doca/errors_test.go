package doca

import (
	"errors"
	"fmt"
	"testing"
)

// A failed call is found by its code, however deeply it is wrapped.
func TestErrorsAreFoundByTheirCode(t *testing.T) {
	err := fmt.Errorf("opening: %w", &Error{Op: "doca_call", Code: CodeAgain})
	if !errors.Is(err, CodeAgain) || !errors.Is(err, ErrQueueFull) || errors.Is(err, CodeInvalidValue) {
		t.Errorf("%v is not only %v", err, CodeAgain)
	}
}

func TestErrorSaysWhatItKnows(t *testing.T) {
	plain := &Error{Op: "doca_mmap_start", Code: CodeDriver}
	if got, want := plain.Error(), "doca_mmap_start: DOCA_ERROR_DRIVER"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	detailed := &Error{Op: "doca_mmap_start", Code: CodeDriver, Detail: "files are not pinned"}
	if got, want := detailed.Error(), "doca_mmap_start: DOCA_ERROR_DRIVER: files are not pinned"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNotFoundErrorListsWhatThereIs(t *testing.T) {
	for want, available := range map[string][]string{
		"no device x: there are none":       nil,
		"no device x: there are a":          {"a"},
		"no device x: there are a and b":    {"a", "b"},
		"no device x: there are a, b and c": {"a", "b", "c"},
	} {
		if got := (&NotFoundError{Kind: "device", Name: "x", Available: available}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLowerFirst(t *testing.T) {
	for text, want := range map[string]string{
		"The card is cold":  "the card is cold",
		"DOCA's libraries":  "DOCA's libraries",
		"libdoca_common is": "libdoca_common is",
		"A":                 "A",
		"":                  "",
	} {
		if got := lowerFirst(text); got != want {
			t.Errorf("lowerFirst(%q) = %q, want %q", text, got, want)
		}
	}
}
