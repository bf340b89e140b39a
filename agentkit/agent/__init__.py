"""The loop: retrieve, ask the model, refine, validate, execute, observe.

Read ``agent``, then ``run``; ``session`` says where a run begins, ``selection`` which tools it
offers, ``executor`` how calls are run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
