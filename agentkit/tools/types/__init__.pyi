from .declared import declared_type as declared_type
from .fit import (
    SignatureTypes as SignatureTypes,
    TypedSlot as TypedSlot,
    Unification as Unification,
    flow as flow,
    signature_types as signature_types,
    slot_of_value as slot_of_value,
    unify as unify,
    unify_signatures as unify_signatures,
)
from .inference import (
    Guess as Guess,
    TypeEvidence as TypeEvidence,
    named_type as named_type,
    type_of as type_of,
    type_of_value as type_of_value,
)
from .lattice import (
    ANY as ANY,
    MEANINGS as MEANINGS,
    NEVER as NEVER,
    Alternative as Alternative,
    TypeSet as TypeSet,
    join as join,
)
