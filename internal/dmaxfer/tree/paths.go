package tree

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dma-copy/dma-copy/internal/lines"
	"github.com/dma-copy/dma-copy/internal/quote"
)

// ParsePaths reads a list of paths for Options.Only. Each path ends with the separator: '\n', as package lines reads
// it, or zero for names that contain line breaks. Empty ones are ignored. Paths are relative to the root of the tree;
// "." and repeated slashes are removed. An absolute path, one with "..", or one of more than MaxPath bytes is an error
// with its number.
func ParsePaths(from io.Reader, separator byte) ([]string, error) {
	paths := []string{}
	_, err := lines.Each(from, separator, MaxPath, func(number int, line string) error {
		path, err := cleanPath(line)
		if err != nil {
			return fmt.Errorf("path %d: %w", number, err)
		}
		if path != "" {
			paths = append(paths, path)
		}
		return nil
	})
	if errors.Is(err, lines.ErrTooLong) {
		err = fmt.Errorf("a path after %s has more than %d bytes: check how the list separates paths",
			quote.Text(lastOf(paths)), MaxPath)
	}
	if err != nil {
		return nil, err
	}
	return paths, nil
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
