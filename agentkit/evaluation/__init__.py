"""8. How good it is: tasks, verifiers, benchmarks, runs and their reports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
