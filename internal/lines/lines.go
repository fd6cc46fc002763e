// Package lines reads lists that have one element on each line.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// ErrTooLong is the error for a line with more bytes than permitted.
var ErrTooLong = errors.New("the line is too long")

// byteOrderMark begins text files of some editors.
var byteOrderMark = []byte("\ufeff")

// Each calls each with every line and its number, from 1 on, until that returns an error, which it returns. Lines end
// with the separator. If that is '\n', a carriage return before it, and a byte order mark at the beginning of the
// list, are not part of a line; any other list has its bytes as they are. It returns the number of the last line that
// it has begun to read. A line of more than longest bytes is ErrTooLong.
func Each(
	from io.Reader, separator byte, longest int, each func(number int, line string) error,
) (number int, err error) {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, longest+len("\r\n")+len(byteOrderMark))
	scanner.Split(func(data []byte, atEnd bool) (int, []byte, error) { return cut(data, separator, atEnd) })
	for number = 1; scanner.Scan(); number++ {
		line := scanner.Bytes()
		if separator == '\n' {
			if number == 1 {
				line = bytes.TrimPrefix(line, byteOrderMark)
			}
			line = bytes.TrimSuffix(line, []byte("\r"))
		}
		if len(line) > longest {
			return number, ErrTooLong
		}
		if err := each(number, string(line)); err != nil {
			return number, err
		}
	}
	if err = scanner.Err(); errors.Is(err, bufio.ErrTooLong) {
		err = ErrTooLong
	}
	return number, err
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
