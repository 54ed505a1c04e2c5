"""What is measured, each against a floor in the same run. `make bench` runs it on the built wheel.

A module of this package that holds a list `CASES` takes part; see harness.py.
"""
