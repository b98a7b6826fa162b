"""Sessions as files: to read (Markdown, HTML), to transfer (JSON, handoff bundles), and imported from other agents."""
