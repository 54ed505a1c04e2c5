"""The bridge kit: everything a chat surface needs, so that a platform's module holds only the platform.

`platform.py` is the port that a platform implements; `kinds.py` finds platforms by name; `main.py` is the process.
"""
