"""The journal: one SQLite database, one writer with group commit, named operations and queries."""
