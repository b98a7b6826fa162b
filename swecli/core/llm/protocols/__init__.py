"""Wire protocols: neutral requests to JSON, and pure decoders of the answers."""
