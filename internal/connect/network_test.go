package connect

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/dma-copy/dma-copy/internal/exit"
	"github.com/dma-copy/dma-copy/internal/service"
)

// Without keys a command connects to this machine only, whatever address localhost has.
func TestAuthNoneStaysOnThisMachine(t *testing.T) {
	d := Daemon{Address: "192.0.2.1:7483", Identity: Identity{Anonymous: true}, Wait: time.Minute}
	_, err := d.dial(t.Context(), service.ClientConfig{Log: zerolog.Nop()})
	if exit.Code(err) != exit.Usage || !strings.Contains(err.Error(), "address of another machine") {
		t.Errorf("got %v", err)
	}
}
