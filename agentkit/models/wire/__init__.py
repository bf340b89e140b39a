"""The chat-completions protocol: requests to bytes, bytes and event streams to responses.

Pure functions and small state machines; nothing here opens a connection.
"""
