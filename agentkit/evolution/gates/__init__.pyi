from .betting import log_money_path as log_money_path
from .bystanders import bystander_gate as bystander_gate
from .canary import canary_gate as canary_gate
from .cost import cost_gate as cost_gate
from .decision import (
    Arm as Arm,
    ArmScore as ArmScore,
    Decision as Decision,
    GateReport as GateReport,
    GateRules as GateRules,
    PairedScore as PairedScore,
    PairedSelection as PairedSelection,
)
from .e_process import (
    log_e_path as log_e_path,
    log_e_value as log_e_value,
)
from .elond import Elond as Elond
from .evidence import Evidence as Evidence
from .from_episodes import (
    Collected as Collected,
    canary_scores as canary_scores,
    shadow_pairs as shadow_pairs,
    shadow_seconds as shadow_seconds,
    shadow_selections as shadow_selections,
    shadow_tokens as shadow_tokens,
)
from .offline import (
    offline_gate as offline_gate,
    one_sided_mid_p as one_sided_mid_p,
)
from .paraphrases import paraphrase_gate as paraphrase_gate
from .planning import (
    chance_to_pass as chance_to_pass,
    wins_needed as wins_needed,
)
from .retrieval_bystanders import (
    own_requests as own_requests,
    retrieval_gate as retrieval_gate,
    retrieved_selections as retrieved_selections,
)
from .shadow import shadow_gate as shadow_gate
