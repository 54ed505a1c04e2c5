"""Middle floor: how anything reaches an actor. Bus, ACP, MCP, chat surfaces, the command line."""
