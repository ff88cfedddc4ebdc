package config

import (
	"strings"
	"testing"
)

func TestFaultsOfTelemetry(t *testing.T) {
	for _, tt := range []struct{ name, value, fault string }{
		{"telemetry.trace_ratio", "0", ""},
		{"telemetry.trace_ratio", "1", ""},
		{"telemetry.trace_ratio", "1.5", "must be a share"},
		{"telemetry.otlp_endpoint", "http://collector:4318", ""},
		{"telemetry.otlp_endpoint", "https://collector/otlp/v1/traces", ""},
		{"telemetry.otlp_endpoint", "collector:4317", "must be http://"},
		{"telemetry.otlp_endpoint", "http://key:hush@collector", "must be http://"},
		{"telemetry.otlp_endpoint", "http://collector?key=hush", "must be http://"},
		{"telemetry.tenant_labels", "7", ""},
		{"telemetry.tenant_labels", "0", "must be above zero"},
	} {
		_, err := Load(Sources{Flags: []Flag{{tt.name, tt.value}}})
		switch {
		case tt.fault == "" && err != nil, tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)):
			t.Errorf("%s=%s: %v", tt.name, tt.value, err)
		case err != nil && strings.Contains(err.Error(), "hush"):
			t.Errorf("the fault repeats a secret: %v", err)
		}
	}
}
