from .dialects import (
    PATTERN_DROPPED as PATTERN_DROPPED,
    normalise_parameters as normalise_parameters,
)
from .function import (
    DefinitionOptions as DefinitionOptions,
    read_function as read_function,
)
