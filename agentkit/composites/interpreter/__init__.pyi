from .runner import Composite as Composite
from .trace import TracedCall as TracedCall
