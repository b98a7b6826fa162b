"""Budgets of money and tokens that ask before they are exceeded."""
