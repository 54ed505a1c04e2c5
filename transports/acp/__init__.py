"""The Agent Client Protocol (ACP): JSON-RPC lines, client, updates to neutral events, the demo agent."""
