from .abstraction import Abstraction as Abstraction
from .coverage import Coverage as Coverage
from .description import Description as Description
from .exact_name import ExactName as ExactName
from .examples import Examples as Examples
from .lexical import Lexical as Lexical
from .near_duplicates import NearDuplicates as NearDuplicates
from .references import References as References
from .signature import (
    Signature as Signature,
    TypeScoring as TypeScoring,
)
from .specification import (
    Judgement as Judgement,
    Specification as Specification,
    SpecificationJudge as SpecificationJudge,
)
