// Package negotiate is where the wire protocols between a host and its DPU are. A protocol consists of messages, their
// order, and state machines that turn received bytes into bytes to send and events for the caller:
//
//   - reference: the protocol of NVIDIA's doca_dma_copy, which also finds out whether the peer speaks the native one
//   - native: the protocol between two dma-copy, for files and directories
//   - service: what a command and a daemon have over one connection; each copy in it is a native session
//   - wire: what the protocols share
//
// The packages do no I/O, start no goroutine, read no clock, share no state, and import no other package of this
// module. docs/internals/protocol specifies the protocols, with test vectors and the state tables that the tests read.
package negotiate
