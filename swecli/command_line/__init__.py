"""Behind the command line: arguments, subcommands, and standard input."""
