// Package metrics counts what a daemon does and serves the numbers to Prometheus, on a loopback address or a unix
// socket. docs/SERVICE.md lists the metrics.
//
// Nothing else is served, no profiles either. All label values are of small fixed sets, so that no peer can add time
// series.
package metrics
