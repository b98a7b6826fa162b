"""Language servers: the errors that an edit brought, and questions about names."""
