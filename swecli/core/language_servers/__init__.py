"""Language servers: what an edit broke is told with it, and the model can ask where a name is defined and used."""
