"""What stands behind the command line: its arguments, its subcommands, and what standard input brings."""
