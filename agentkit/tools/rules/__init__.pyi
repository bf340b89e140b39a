from .records import (
    Between as Between,
    CallBefore as CallBefore,
    Condition as Condition,
    EarlierCall as EarlierCall,
    Form as Form,
    JsonScalar as JsonScalar,
    NamedFormat as NamedFormat,
    OneOf as OneOf,
    Requires as Requires,
    Rule as Rule,
    Takes as Takes,
    rule_from_json as rule_from_json,
    rule_to_json as rule_to_json,
)
from .rendering import (
    narrowed_schema as narrowed_schema,
    rule_sentence as rule_sentence,
)
