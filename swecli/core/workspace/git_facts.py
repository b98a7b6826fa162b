"""The old place of ``swecli.core.git_files``, until its last user has moved."""

from swecli.core.git_files import GitFacts, git_facts

__all__ = ("GitFacts", "git_facts")
