"""One reader, and writer where possible, per native session store; index, search."""
