// Package telemetry names what Pulse measures: its instruments, their labels and
// their buckets. It measures nothing itself; the engine does.
//
// docs/metrics.md is made from the table here, and a test of the engine compares the
// table with what an engine reports.
package telemetry
