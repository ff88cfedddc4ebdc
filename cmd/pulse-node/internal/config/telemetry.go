package config

import (
	"fmt"
	"net/url"
)

func (l *loader) checkTelemetry() {
	t := l.config.Telemetry
	if t.TraceRatio > 1 {
		l.fault("telemetry.trace_ratio", l.source("telemetry.trace_ratio"), fmt.Sprintf("%v must be a share, 0 to 1", t.TraceRatio))
	}
	if t.OTLPEndpoint == "" {
		return
	}
	// What is in it is not repeated: a URL may hold credentials.
	u, err := url.Parse(t.OTLPEndpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		l.fault("telemetry.otlp_endpoint", l.source("telemetry.otlp_endpoint"),
			"must be http://host:port or https://host:port, with a path if the collector wants another than /v1/traces")
	}
}
