from .dense import (
    Dense as Dense,
    flat_dense as flat_dense,
)
from .flat_library import FlatLibrary as FlatLibrary
from .hierarchy import (
    Hierarchy as Hierarchy,
    text_hierarchy as text_hierarchy,
)
from .registry import (
    VARIANTS as VARIANTS,
    variant as variant,
)
from .text_tree import (
    TextTree as TextTree,
    TreeKind as TreeKind,
)
