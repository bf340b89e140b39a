from .canonical import canonical_json as canonical_json
from .definition import (
    ChildReference as ChildReference,
    Description as Description,
    EffectName as EffectName,
    Effects as Effects,
    Example as Example,
    Origin as Origin,
    Signature as Signature,
    Specification as Specification,
    ToolDefinition as ToolDefinition,
)
from .error_messages import (
    close_to as close_to,
    problems_of as problems_of,
)
from .rules.records import (
    Between as Between,
    CallBefore as CallBefore,
    Condition as Condition,
    EarlierCall as EarlierCall,
    Form as Form,
    OneOf as OneOf,
    Requires as Requires,
    Rule as Rule,
    Takes as Takes,
    rule_from_json as rule_from_json,
    rule_to_json as rule_to_json,
)
from .rules.rendering import (
    narrowed_schema as narrowed_schema,
    rule_sentence as rule_sentence,
)
from .schema_validator import (
    UncheckableError as UncheckableError,
    fits as fits,
    schema_errors as schema_errors,
)
from .sources.dialects import (
    normalise_parameters as normalise_parameters,
    normalise_schema as normalise_schema,
)
from .sources.function import (
    DefinitionOptions as DefinitionOptions,
)
from .sources.json_records import (
    DefinitionBatch as DefinitionBatch,
    RejectedEntry as RejectedEntry,
    definition_from_json as definition_from_json,
    definitions_from_json as definitions_from_json,
)
from .tool import Tool as Tool
from .validation import (
    ArgumentValidator as ArgumentValidator,
    canonical_arguments as canonical_arguments,
    coerce as coerce,
    validate_arguments as validate_arguments,
)
