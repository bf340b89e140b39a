from .patterns import (
    PATTERNS as PATTERNS,
    PatternName as PatternName,
)
from .redaction import (
    Redaction as Redaction,
    change_texts as change_texts,
)
