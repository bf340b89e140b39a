"""Definitions from where they are found: functions, pydantic models, JSON records.

Every source gives the same ``ToolDefinition`` and remembers in its ``origin`` where it came from.
"""
