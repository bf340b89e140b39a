from .app import create_app as create_app
from .keys import Keys as Keys
from .limits import ServerLimits as ServerLimits
from .running import (
    serve as serve,
    serving as serving,
)
