"""/init: writes OPENCLI.md, the guide to the project, from the project's own files."""
