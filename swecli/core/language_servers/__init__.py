"""Language servers: the result of an edit reports the errors it caused, and the model can ask where a name is defined
and used."""
