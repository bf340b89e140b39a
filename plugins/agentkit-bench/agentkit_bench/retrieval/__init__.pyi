from .apart import (
    CorpusFiles as CorpusFiles,
)
from .apart import (
    measure_apart as measure_apart,
)
from .comparing import compare as compare
from .corpus import (
    RetrievalCorpus as RetrievalCorpus,
)
from .corpus import (
    RetrievalQuery as RetrievalQuery,
)
from .corpus import (
    load_corpus as load_corpus,
)
from .equipment import Equipment as Equipment
from .measure import measure_method as measure_method
from .methods import (
    METHODS as METHODS,
)
from .methods import (
    Limits as Limits,
)
from .methods import (
    Method as Method,
)
from .methods import (
    find_method as find_method,
)
from .report import (
    Comparison as Comparison,
)
from .report import (
    MethodReport as MethodReport,
)
