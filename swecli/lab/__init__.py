"""What other settings of the context would have done to sessions that were recorded; no model is asked."""
