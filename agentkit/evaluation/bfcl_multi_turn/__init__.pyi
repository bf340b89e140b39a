from .environment import (
    BfclEnvironment as BfclEnvironment,
    BfclWorlds as BfclWorlds,
)
from .files import (
    CATEGORIES as CATEGORIES,
    SIMULATORS as SIMULATORS,
    fetch_bfcl_multi_turn as fetch_bfcl_multi_turn,
    installed_bfcl as installed_bfcl,
)
from .loading import (
    ADDED_FUNCTIONS_REQUEST as ADDED_FUNCTIONS_REQUEST,
    load_bfcl_multi_turn as load_bfcl_multi_turn,
)
