"""Permissions: one pure decision function over mode, rules, trust, sandbox and call."""
