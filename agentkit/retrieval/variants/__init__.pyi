from .dense import (
    Dense as Dense,
)
from .dense import (
    flat_dense as flat_dense,
)
from .flat_library import FlatLibrary as FlatLibrary
from .hierarchy import (
    Hierarchy as Hierarchy,
)
from .hierarchy import (
    text_hierarchy as text_hierarchy,
)
from .registry import (
    VARIANTS as VARIANTS,
)
from .registry import (
    variant as variant,
)
from .text_tree import (
    TextTree as TextTree,
)
from .text_tree import (
    TreeKind as TreeKind,
)
