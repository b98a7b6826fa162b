"""Signing in with a subscription in place of an API key, where its owner lets other programs do so."""
