// Package dashboards has the test of examples/grafana: its dashboard and alert rules are valid, and all metrics and
// labels in them are those of a real daemon.
package dashboards
