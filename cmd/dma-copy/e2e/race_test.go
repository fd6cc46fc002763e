//go:build race

package e2e

// raceDetector tells whether this is a build with the race detector.
const raceDetector = true
