"""What was learned about a project, as short sentences that had to earn their place."""
