from .apart import (
    CorpusFiles as CorpusFiles,
    measure_apart as measure_apart,
)
from .comparing import compare as compare
from .corpus import (
    RetrievalCorpus as RetrievalCorpus,
    RetrievalQuery as RetrievalQuery,
    load_corpus as load_corpus,
)
from .equipment import Equipment as Equipment
from .measure import measure_method as measure_method
from .methods import (
    METHODS as METHODS,
    Limits as Limits,
    Method as Method,
    find_method as find_method,
)
from .report import (
    Comparison as Comparison,
    MethodReport as MethodReport,
)
