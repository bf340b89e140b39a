"""Servers as tools: ``server.McpServer``."""
