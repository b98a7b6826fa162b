"""Settings: schema, layered loading with provenance, workspace trust, stored keys."""
