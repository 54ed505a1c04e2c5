"""Logging of the long-lived processes: structlog, one line an event, secrets blanked. Imported only where it logs."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET = re.compile(r"(?i)(token|secret|password|api[_-]?key|authorization)")


def _blank_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for name in event:
        if _SECRET.search(name):
            event[name] = "…"
    return event


def logger(process: str, level: str) -> Any:
    """A logger bound to its process's name; on a terminal readable lines, else JSON. Never below `level`."""
    number = getattr(logging, level.upper())
    logging.basicConfig(stream=sys.stderr, level=number, format="%(levelname)s %(name)s: %(message)s")
    readable = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True), _blank_secrets,
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if readable else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    return structlog.get_logger().bind(process=process)
