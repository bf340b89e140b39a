from .files import HandEdit as HandEdit
from .store import (
    DirectoryStore as DirectoryStore,
    open_directory as open_directory,
)
