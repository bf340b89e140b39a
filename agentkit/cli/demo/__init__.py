"""The loop on five small tools: what ``agentkit demo`` asks, learns and measures."""
