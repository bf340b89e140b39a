from .assessing import EpisodeGates as EpisodeGates
from .cycle import Advance as Advance
from .differences import Difference as Difference
from .judging import (
    ChangeJudge as ChangeJudge,
    Judgement as Judgement,
)
from .ledger import Ledger as Ledger
from .policy import LifecyclePolicy as LifecyclePolicy
from .record import (
    ProposalRecord as ProposalRecord,
    ProposerRecord as ProposerRecord,
    TestPlace as TestPlace,
)
from .revalidating import Revalidation as Revalidation
from .standing import Standing as Standing
