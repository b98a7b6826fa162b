"""What a message of the user is about in the workspace: files that it names, places for its words."""
