"""The vocabulary of the bus: every message that surfaces, hosts, the reader and actors exchange, by who speaks it."""
