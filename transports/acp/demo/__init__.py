"""The demo agent: a small coding agent without a model, for trying everything without keys. It says what it is."""
