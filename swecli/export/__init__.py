"""Sessions as files: for reading (Markdown, HTML), to be taken along (JSON, handoff bundles), and from other agents."""
