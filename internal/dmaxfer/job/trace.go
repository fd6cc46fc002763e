package job

import (
	"cmp"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/negotiate"
)

// Trace logs each message of one session of a protocol at level TRACE, on one line. State is the session's after the
// message; the line also has the one before it. A Trace is not safe for concurrent use. At other levels it only keeps
// the state.
type Trace struct {
	Log      zerolog.Logger
	Protocol string
	state    negotiate.State // after the last message; 0: negotiate.Idle
}

// Sent is called before a message is given to the channel.
func (t *Trace) Sent(message []byte, state negotiate.State) { t.line("message sent", message, state) }

// Received is called when the session has judged a message, also one that it refused.
func (t *Trace) Received(message []byte, state negotiate.State) {
	t.line("message received", message, state)
}

func (t *Trace) line(text string, message []byte, state negotiate.State) {
	before := cmp.Or(t.state, negotiate.Idle)
	t.state = state
	event := t.Log.Trace()
	if event == nil {
		return
	}
	event.Str("protocol", t.Protocol).Str("type", negotiate.TypeOf(message).String()).Int("bytes", len(message))
	outline := negotiate.OutlineOf(message)
	if outline.HasEntry {
		event.Uint32("entry", outline.Entry)
	}
	if outline.Items > 0 {
		event.Uint32("items", outline.Items)
	}
	event.Str("from", before.String()).Str("to", state.String()).Msg(text)
}
