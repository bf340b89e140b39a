from .comparing import (
    LibraryDiff as LibraryDiff,
)
from .comparing import (
    ToolChange as ToolChange,
)
from .comparing import (
    compare_libraries as compare_libraries,
)
from .contracts import (
    ContractChange as ContractChange,
)
from .contracts import (
    contract_changes as contract_changes,
)
from .page import (
    diff_markdown as diff_markdown,
)
from .page import (
    headline as headline,
)
