package job

import (
	"fmt"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/negotiate/wire"
)

// Trace logs each message of one session of a protocol at level TRACE, on one line. State is the session's after the
// message; the line also has the one before it. A Trace is not safe for concurrent use. At other levels it only keeps
// the state.
type Trace struct {
	Log      zerolog.Logger
	Protocol string
	state    fmt.Stringer // after the last message; nil: idle
}

// Sent is called before a message is given to the channel.
func (t *Trace) Sent(message []byte, state fmt.Stringer) { t.line("message sent", message, state) }

// Received is called when the session has judged a message, also one that it refused.
func (t *Trace) Received(message []byte, state fmt.Stringer) {
	t.line("message received", message, state)
}

func (t *Trace) line(text string, message []byte, state fmt.Stringer) {
	before := t.state
	t.state = state
	event := t.Log.Trace()
	if event == nil {
		return
	}
	event.Str("protocol", t.Protocol).Str("type", wire.TypeOf(message).String()).Int("bytes", len(message))
	outline := wire.OutlineOf(message)
	if outline.HasEntry {
		event.Uint32("entry", outline.Entry)
	}
	if outline.Items > 0 {
		event.Uint32("items", outline.Items)
	}
	from := "idle"
	if before != nil {
		from = before.String()
	}
	event.Str("from", from).Str("to", state.String()).Msg(text)
}
