package config

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/dma-copy/dma-copy/internal/cli/option"
	"github.com/dma-copy/dma-copy/internal/negotiate/service"
)

// The parsers below turn the text of a value into its type, for flags, parameter files and variables alike. Their
// errors say what is wrong and what to give instead; the caller adds the origin.

// longestMeasurement is half of what a daemon permits: a case may turn out slower than its first copies.
const longestMeasurement = 5 * time.Second

func parseMeasurement(text string) (time.Duration, error) {
	each, err := option.ParsePositiveDuration(text)
	if err == nil && each > longestMeasurement {
		return 0, fmt.Errorf("a measurement takes at most %s", longestMeasurement)
	}
	return each, err
}

func parseText(text string) (string, error) {
	switch {
	case len(text) > service.MaxPingText:
		return "", fmt.Errorf("longer than %d bytes; give a shorter text", service.MaxPingText)
	case !utf8.ValidString(text):
		return "", errors.New("not UTF-8; give a text such as hello")
	}
	return text, nil
}

func parsePingSize(text string) (uint32, error) {
	size, err := option.ParseSize(text)
	if err == nil && size > service.MaxPingSize {
		err = errors.New("too large; give at most 4MiB")
	}
	return uint32(size), err
}
