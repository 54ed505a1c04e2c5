"""Top floor: who does the work. The supervisor, its actors, the agent hosts and the reader."""
