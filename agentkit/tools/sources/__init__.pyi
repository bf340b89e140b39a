from .dialects import (
    NormalisedSchema as NormalisedSchema,
    SchemaChange as SchemaChange,
    normalise_parameters as normalise_parameters,
    normalise_schema as normalise_schema,
)
from .function import (
    DefinitionOptions as DefinitionOptions,
    definition_from_function as definition_from_function,
)
from .json_records import (
    DefinitionBatch as DefinitionBatch,
    RejectedEntry as RejectedEntry,
    definition_from_json as definition_from_json,
    definitions_from_json as definitions_from_json,
)
from .pydantic_schema import definition_from_model as definition_from_model
