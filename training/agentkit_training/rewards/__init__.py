"""What a rollout is worth: verdicts, ToolDNA's rewards, CoCoDA's saved calls, and their sums."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
