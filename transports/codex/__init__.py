"""Codex's own daemon: joining a thread that a terminal has open."""
