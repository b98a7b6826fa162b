"""Values that everything speaks: messages, events, commands, display blocks, usage."""
