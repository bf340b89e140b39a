"""A library as an MCP server: ``library_server.LibraryServer``."""
