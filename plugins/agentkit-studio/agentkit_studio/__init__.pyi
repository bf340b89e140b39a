from .access import Access as Access, Role as Role, User as User
from .app import create_studio as create_studio
