"""The `va` command, lazily loaded."""
