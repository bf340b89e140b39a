"""6. Why it failed: failures in words that a model can act on."""

from agentkit.diagnosis.wording import describe_failure

__all__ = ["describe_failure"]
