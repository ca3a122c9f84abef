"""The search spaces; each file registers its own with ``@spaces.register`` and is found by scanning."""
