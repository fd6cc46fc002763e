package wire

// AbortCode is why a side gives up. The numbers are the program's exit codes.
type AbortCode uint8

// The codes. Any other is treated as AbortFailure, sent or received.
const (
	AbortFailure       AbortCode = 1 // any other reason
	AbortSettings      AbortCode = 3 // this peer cannot do what the user asked for
	AbortSource        AbortCode = 4
	AbortTarget        AbortCode = 5
	AbortDevice        AbortCode = 6
	AbortPeer          AbortCode = 7 // the side that receives the ABORT was silent
	AbortRefused       AbortCode = 8 // authentication or policy
	AbortDigest        AbortCode = 9
	AbortSourceChanged AbortCode = 10
	AbortProtocol      AbortCode = 11
	AbortLimit         AbortCode = 14
	AbortOtherPath     AbortCode = 64  // no exit code: the window is not within reach; another path may serve instead
	AbortHangup        AbortCode = 129 // SIGHUP; older releases treat it as AbortFailure
	AbortInterrupted   AbortCode = 130
	AbortTerminated    AbortCode = 143
)

func (c AbortCode) Known() AbortCode {
	switch c {
	case AbortFailure, AbortSettings, AbortSource, AbortTarget, AbortDevice, AbortPeer, AbortRefused, AbortDigest,
		AbortSourceChanged, AbortProtocol, AbortLimit, AbortOtherPath, AbortHangup, AbortInterrupted, AbortTerminated:
		return c
	}
	return AbortFailure
}
