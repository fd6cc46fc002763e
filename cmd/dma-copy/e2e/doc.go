// Package e2e contains the end-to-end tests of dma-copy and no other code. They run the program as users do: as two
// processes, a host and a DPU, over the software device. They know it by its command line, exit codes, output and
// files only, and must not depend on how package main is made. Only TestSoak runs both sides in the test's own
// process.
//
// The first test that needs the program builds it once, with the race detector, cgo and coverage if the tests were
// built with them, and puts it into PATH as dma-copy. The environment variable DMA_COPY_TEST_PROGRAM names an
// executable to test instead. refpeer, the model of the reference program, is the test binary itself under another
// name.
//
// Scripts in testdata/script test one behaviour each (scripts_test.go, script_commands_test.go). Behaviour with many
// cases is tested in Go, with a fixture that has a directory for each side (fixture_test.go) and the same checks of a
// process (process_test.go). Crash, signal and stall tests repeat a transfer and disrupt it at random times
// (random_time_test.go). docs/internals/testing.md describes the scripts' commands and the steps of refpeer.
package e2e
