"""The requirements of surfaces, by id (S and the section's number), in one line each. See tests/requirements.py."""

from __future__ import annotations

REQUIREMENTS: dict[str, str] = {}
