"""The requirements that no test shows yet, each with the reason. An id leaves this table with the commit that brings its test."""

from __future__ import annotations

OPEN: dict[str, str] = {}
