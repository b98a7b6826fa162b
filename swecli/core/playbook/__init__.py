"""The playbook: lessons about a project, as short sentences supported by evidence."""
