package ucx

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dma-copy/dma-copy/internal/exit"
)

var (
	// ErrQueueFull means that events must be reaped before more operations are posted.
	ErrQueueFull = errors.New("queue full")

	// ErrClosed is returned by every use of a closed object.
	ErrClosed = errors.New("already closed")

	// ErrStillRunning means that operations did not end: nothing was freed, and Close can be called again.
	ErrStillRunning = errors.New("operations are still running")

	// ErrInvalid means that an argument is out of range, or that a key or an address of the peer cannot be used.
	ErrInvalid = errors.New("invalid argument")

	// ErrTooManyDevices means that UCX would end the process, because the machine has more network devices than UCX can
	// have.
	ErrTooManyDevices = exit.NewReason(exit.Device, "", "more network devices than UCX can use")

	// ErrUnavailable is wrapped by every error of Open that means that this program or this machine has no UCX.
	ErrUnavailable = exit.NewReason(exit.Device, "", "UCX is not available")
)

// Status is a result code of UCX. Source: ucs_status_t.
type Status int32

// Statuses that callers handle.
const (
	StatusOK         Status = 0
	StatusNoResource Status = -2
	StatusNoMemory   Status = -4
	StatusNoDevice   Status = -14

	statusBusy      Status = -15
	statusQueueFull Status = 2 // not one of UCX
)

// Error is a UCX call or operation that failed. errors.Is finds the Status.
type Error struct {
	Op     string // the UCX function
	Status Status
	Text   string // UCX's text for the status
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Op, e.Text) }

// Unwrap makes errors.Is find the Status.
func (e *Error) Unwrap() error { return e.Status }

func (s Status) Error() string { return fmt.Sprintf("UCX status %d", int32(s)) }

// operations are what events report the end of.
var operations = map[Kind]string{Completed: "UCX operation", Arrived: "ucp_am_recv_data_nbx", Failed: "UCX endpoint"}

// A refused message: the values of enum ucx_refusal in worker.h, as the status of the event.
var refusals = map[int32]string{
	-1: "a header of %d bytes",
	-2: "an invalid token",
	-3: "slot %d, which does not exist",
	-4: "slot %d, which already has a message",
	-5: "%d bytes, which is not a length of a slot's message",
	-6: "no endpoint to fetch its bytes from",
}

// refusal returns why a message was refused. The tag of the event is the number in the text.
func refusal(e event) error {
	text := refusals[e.status]
	if strings.Contains(text, "%") {
		text = fmt.Sprintf(text, e.tag)
	}
	return fmt.Errorf("active message with %s: %w", text, ErrInvalid)
}
