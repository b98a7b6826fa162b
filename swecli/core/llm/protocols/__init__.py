"""Wire protocols: requests in neutral form -> JSON, and pure decoders of what comes back."""
