"""The command ``agentkit-train``."""
