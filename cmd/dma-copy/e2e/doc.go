// Package e2e tests dma-copy as people run it: as two processes, over the software device. It holds tests only.
//
// The tests build the program once, as they are built themselves, and call it by its name. What they need of a peer
// that is not dma-copy is in the test binary, which answers to the name refpeer. docs/TESTING.md says more.
package e2e
