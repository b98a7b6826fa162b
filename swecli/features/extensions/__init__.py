"""News of skills, Markdown commands and agent profiles that change while a session runs."""
