"""Enter VibeAround in an agent's own configuration, and take it out again: one file per format or idea."""
