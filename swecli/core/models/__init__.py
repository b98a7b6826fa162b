"""The context as a document: what programs, exports and logs read and write as JSON."""
