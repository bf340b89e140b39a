from .comparing import (
    LibraryDiff as LibraryDiff,
    ToolChange as ToolChange,
    compare_libraries as compare_libraries,
)
from .contracts import (
    ContractChange as ContractChange,
    contract_changes as contract_changes,
)
from .page import (
    diff_markdown as diff_markdown,
    headline as headline,
)
