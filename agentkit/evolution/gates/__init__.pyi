from .betting import log_money_path as log_money_path
from .bystanders import bystander_gate as bystander_gate
from .canary import canary_gate as canary_gate
from .cost import cost_gate as cost_gate
from .decision import (
    Arm as Arm,
)
from .decision import (
    ArmScore as ArmScore,
)
from .decision import (
    Decision as Decision,
)
from .decision import (
    GateReport as GateReport,
)
from .decision import (
    GateRules as GateRules,
)
from .decision import (
    PairedScore as PairedScore,
)
from .decision import (
    PairedSelection as PairedSelection,
)
from .e_process import (
    log_e_path as log_e_path,
)
from .e_process import (
    log_e_value as log_e_value,
)
from .elond import Elond as Elond
from .evidence import Evidence as Evidence
from .from_episodes import (
    Collected as Collected,
)
from .from_episodes import (
    canary_scores as canary_scores,
)
from .from_episodes import (
    shadow_pairs as shadow_pairs,
)
from .from_episodes import (
    shadow_seconds as shadow_seconds,
)
from .from_episodes import (
    shadow_selections as shadow_selections,
)
from .from_episodes import (
    shadow_tokens as shadow_tokens,
)
from .offline import (
    offline_gate as offline_gate,
)
from .offline import (
    one_sided_mid_p as one_sided_mid_p,
)
from .paraphrases import paraphrase_gate as paraphrase_gate
from .planning import (
    chance_to_pass as chance_to_pass,
)
from .planning import (
    wins_needed as wins_needed,
)
from .retrieval_bystanders import (
    own_requests as own_requests,
)
from .retrieval_bystanders import (
    retrieval_gate as retrieval_gate,
)
from .retrieval_bystanders import (
    retrieved_selections as retrieved_selections,
)
from .shadow import shadow_gate as shadow_gate
