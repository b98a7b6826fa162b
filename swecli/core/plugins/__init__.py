"""Plugins that the user added: where they come from, their pinned copies, marketplaces."""
