from .codec import (
    rule_from_json as rule_from_json,
)
from .codec import (
    rule_to_json as rule_to_json,
)
from .earlier import EarlierCall as EarlierCall
from .inherited import (
    demanded as demanded,
)
from .inherited import (
    wanted_before_children as wanted_before_children,
)
from .narrowing import (
    narrowed_schema as narrowed_schema,
)
from .narrowing import (
    why_unstated as why_unstated,
)
from .records import (
    Between as Between,
)
from .records import (
    CallBefore as CallBefore,
)
from .records import (
    Condition as Condition,
)
from .records import (
    Form as Form,
)
from .records import (
    JsonScalar as JsonScalar,
)
from .records import (
    NamedFormat as NamedFormat,
)
from .records import (
    OneOf as OneOf,
)
from .records import (
    Requires as Requires,
)
from .records import (
    Rule as Rule,
)
from .sentences import rule_sentence as rule_sentence
