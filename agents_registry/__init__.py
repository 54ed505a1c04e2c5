"""Ground floor: what is known about each coding agent. Data first, code second."""
