"""The Textual front-end, the only package that imports textual. ``launch.run`` is the way in."""
