// Package grafana holds dashboards for Grafana, and tests that every expression in
// them parses and names only metrics, labels and words that karui and karui-watchdog
// have, and that no two panels lie upon one another.
package grafana
