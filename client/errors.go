package client

import (
	"errors"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/report"
)

// The causes of failures, which errors.Is finds in each error of this package.
var (
	ErrUsage      = errors.New("usage or configuration")
	ErrSource     = errors.New("source missing or unreadable")
	ErrTarget     = errors.New("target exists, or cannot be written")
	ErrDevice     = errors.New("device, driver or capability missing")
	ErrPeer       = errors.New("daemon absent, lost or timed out")
	ErrRefused    = errors.New("refused: key not trusted, or right missing")
	ErrDigest     = errors.New("digest mismatch")
	ErrChanged    = errors.New("source changed during the copy")
	ErrProtocol   = errors.New("protocol, version or peer misbehavior")
	ErrSomeFailed = errors.New("some entries failed")
	ErrLimit      = errors.New("stopped by a limit")
)

var causes = map[int]error{
	exit.Usage: ErrUsage, exit.Source: ErrSource, exit.Target: ErrTarget, exit.Device: ErrDevice, exit.Peer: ErrPeer,
	exit.Refused: ErrRefused, exit.Digest: ErrDigest, exit.SourceChanged: ErrChanged, exit.Protocol: ErrProtocol,
	exit.SomeFailed: ErrSomeFailed, exit.NotHardware: ErrDevice, exit.Limit: ErrLimit,
}

// failed is an error in the words of the program, with its cause.
type failed struct{ error }

// failure returns an error of this package, nil for nil.
func failure(err error) error {
	if err == nil {
		return nil
	}
	return failed{err}
}

// Error returns the line that the program would print.
func (f failed) Error() string { return report.Sentence(f.error) }

// Is reports whether cause is the cause of the error.
func (f failed) Is(cause error) bool { return causes[exit.Code(f.error)] == cause }

// Unwrap returns the error itself, such as the error of a context that has ended.
func (f failed) Unwrap() error { return f.error }
