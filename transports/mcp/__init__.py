"""The Model Context Protocol (MCP) server: pure core, tools, the stdio shim."""
