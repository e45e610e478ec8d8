"""MCP over standard input and output, line by line and through real clients."""
