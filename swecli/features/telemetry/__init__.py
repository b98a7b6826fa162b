"""OpenTelemetry: what a session did, as traces and metrics for the user's own collector. Off by default."""
