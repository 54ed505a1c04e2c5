"""The vocabulary of the bus: every message that surfaces, hosts, the reader and actors exchange, by who speaks it.

A process imports the parts that it speaks, since each message costs its share of the start; a part that it did not expect
is loaded when its first message comes.
"""

from __future__ import annotations

PARTS = ("bridges", "children", "conversation", "handover", "hosting", "lists", "storage", "surface", "threads")


def load_all() -> None:
    """Make every message known to the codec."""
    from importlib import import_module

    for part in PARTS:
        import_module(f"{__name__}.{part}")
