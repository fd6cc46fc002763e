//go:build race

package e2e

// raceDetector reports whether the tests were built with the race detector.
const raceDetector = true
