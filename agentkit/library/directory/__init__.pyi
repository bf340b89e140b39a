from .hand_edits import HandEdit as HandEdit
from .store import (
    DirectoryStore as DirectoryStore,
)
from .store import (
    open_directory as open_directory,
)
