// Package traffic counts the bytes of a daemon's copies while they run, and keeps the rates of the last minutes. It
// must not change what the daemon does, and uses no CPU time while no copy runs.
package traffic
