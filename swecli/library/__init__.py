"""swecli's context for programs: documents, figures, counters, the context manager, stored results.

The program itself needs none of them. ``from swecli import ...`` has all of them and the ``Client``. Times are
timezone-aware, in UTC; sizes are tokens.
"""
