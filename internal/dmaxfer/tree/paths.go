package tree

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/quote"
)

// ParsePaths reads a list of paths for Options.Only, each of which ends with the separator: '\n', or zero for names
// that contain line breaks. Empty ones are ignored. Paths are relative to the root of the tree; "." and repeated
// slashes are removed. An absolute path, one with "..", or one of more than MaxPath bytes is an error with its number.
func ParsePaths(from io.Reader, separator byte) ([]string, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, MaxPath+2)
	lines.Split(func(data []byte, atEnd bool) (int, []byte, error) { return cut(data, separator, atEnd) })
	paths := []string{}
	for number := 1; lines.Scan(); number++ {
		path, err := cleanPath(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("path %d: %w", number, err)
		}
		if path != "" {
			paths = append(paths, path)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("a path after %s has more than %d bytes: check how the list separates paths",
			quote.Text(lastOf(paths)), MaxPath)
	} else if err != nil {
		return nil, err
	}
	return paths, nil
}

// cut is a bufio.SplitFunc with this separator.
func cut(data []byte, separator byte, atEnd bool) (advance int, token []byte, err error) {
	if end := bytes.IndexByte(data, separator); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEnd && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

func lastOf(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}

// cleanPaths returns the paths in the order of the walk, without duplicates.
func cleanPaths(paths []string) ([]string, error) {
	cleaned := make([]string, 0, len(paths))
	for _, path := range paths {
		path, err := cleanPath(path)
		if err != nil {
			return nil, err
		}
		if path != "" {
			cleaned = append(cleaned, path)
		}
	}
	slices.SortFunc(cleaned, comparePaths)
	return slices.Compact(cleaned), nil
}

// cleanPath removes "." and superfluous slashes; the root is the empty path.
func cleanPath(path string) (string, error) {
	switch {
	case strings.HasPrefix(path, "/"):
		return "", fmt.Errorf("%s is absolute: list paths relative to the source directory", quote.Text(path))
	case strings.IndexByte(path, 0) >= 0:
		return "", fmt.Errorf("%s contains a zero byte: check how the list separates paths", quote.Text(path))
	case len(path) > MaxPath:
		return "", fmt.Errorf("%s has more than %d bytes: shorten the path", quote.Text(path), MaxPath)
	}
	parts := strings.Split(path, "/")
	if slices.Contains(parts, "..") {
		return "", fmt.Errorf("%s contains \"..\": list paths below the source directory", quote.Text(path))
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" || part == "." })
	return strings.Join(parts, "/"), nil
}

// comparePaths orders paths as the walk does: bytewise by component.
func comparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch {
		case a[i] == b[i]:
		case a[i] == '/':
			return -1
		case b[i] == '/':
			return 1
		case a[i] < b[i]:
			return -1
		default:
			return 1
		}
	}
	return len(a) - len(b)
}
