"""Skills, Markdown commands and agent profiles: files with which users and projects extend swecli."""
