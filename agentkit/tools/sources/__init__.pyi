from .dialects import (
    NormalisedSchema as NormalisedSchema,
)
from .dialects import (
    SchemaChange as SchemaChange,
)
from .dialects import (
    normalise_parameters as normalise_parameters,
)
from .dialects import (
    normalise_schema as normalise_schema,
)
from .function import (
    DefinitionOptions as DefinitionOptions,
)
from .function import (
    definition_from_function as definition_from_function,
)
from .json_schema import (
    DefinitionBatch as DefinitionBatch,
)
from .json_schema import (
    RejectedEntry as RejectedEntry,
)
from .json_schema import (
    definition_from_json as definition_from_json,
)
from .json_schema import (
    definitions_from_json as definitions_from_json,
)
from .pydantic_model import definition_from_model as definition_from_model
