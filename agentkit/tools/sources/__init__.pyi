from .dialects import (
    reference_fault as reference_fault,
    schema_fault as schema_fault,
)
from .function import (
    DefinitionOptions as DefinitionOptions,
    read_function as read_function,
)
