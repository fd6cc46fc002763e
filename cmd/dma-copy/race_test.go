//go:build race

package main

// raceDetector tells whether this is a build with the race detector.
const raceDetector = true
