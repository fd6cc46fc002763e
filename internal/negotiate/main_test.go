package negotiate

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// appendType begins a message.
func appendType(dst []byte, t Type) []byte { return sending(dst, t).bytes }
