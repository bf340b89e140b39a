from .patterns import (
    PATTERNS as PATTERNS,
)
from .patterns import (
    PatternName as PatternName,
)
from .redaction import (
    Redaction as Redaction,
)
from .redaction import (
    change_texts as change_texts,
)
