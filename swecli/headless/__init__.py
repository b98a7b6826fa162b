"""Front-end without a screen: text, json, stream-json."""
