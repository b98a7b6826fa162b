"""Language servers: an edit's result names what it broke, and the model can ask where a name is defined and used."""
