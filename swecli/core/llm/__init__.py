"""Access to models: the client port, wire protocols, transport, errors, the scripted model."""
