// Package prometheus holds the alert rules for Prometheus, and tests that they name
// only metrics that karui and karui-watchdog have, that each leads to an entry of the
// runbook, and, where promtool is installed, that they fire when they should.
package prometheus
