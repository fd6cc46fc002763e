// Package window is the memory that both sides of a transfer move chunks through: a window of slots, which one side
// exposes and the other opens, and this side's slots, buffers and engines around it.
//
//	sender    slots ─► [engine ─►] window          a side without an engine has its slots in the window itself
//	receiver  window ─► [engine ─►] buffers
//
// A Memory makes windows: on a DOCA device and a Comch connection by DMA (dma.go) or over producers and consumers
// (fast.go), for both sides within one process (localmemory.go); connections between machines have others, in
// package network. A KeptMemory keeps its window from one transfer to the next. The package must not know the protocol
// of a transfer, only how a message describes a window; the caller's goroutine does everything, and a lane's goroutine
// alone uses the lane's engine and buffers.
package window
