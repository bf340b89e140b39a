from .environment import (
    BfclEnvironment as BfclEnvironment,
)
from .environment import (
    BfclWorlds as BfclWorlds,
)
from .files import (
    CATEGORIES as CATEGORIES,
)
from .files import (
    SIMULATORS as SIMULATORS,
)
from .files import (
    fetch_bfcl_multi_turn as fetch_bfcl_multi_turn,
)
from .files import (
    installed_bfcl as installed_bfcl,
)
from .loading import (
    ADDED_FUNCTIONS_REQUEST as ADDED_FUNCTIONS_REQUEST,
)
from .loading import (
    load_bfcl_multi_turn as load_bfcl_multi_turn,
)
