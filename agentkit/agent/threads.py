"""Running a blocking function beside the event loop; it lives with the tools, which share it."""

from __future__ import annotations

from agentkit.tools.threads import run_in_daemon_thread

__all__ = ["run_in_daemon_thread"]
