// Package metrics counts what a daemon does and serves the numbers to Prometheus, on a loopback address or a unix
// socket. docs/reference/metrics.md lists the metrics.
//
// Beside it there is at most the status page of package page: no profiles, and nothing that changes the daemon. All
// label values are of small fixed sets, so that no peer can add time series.
package metrics
