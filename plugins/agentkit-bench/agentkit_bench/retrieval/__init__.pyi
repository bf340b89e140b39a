from .corpus import (
    CorpusFiles as CorpusFiles,
    RetrievalCorpus as RetrievalCorpus,
    RetrievalQuery as RetrievalQuery,
    load_corpus as load_corpus,
)
from .measure import (
    MethodReport as MethodReport,
    compare as compare,
    measure_apart as measure_apart,
    measure_method as measure_method,
    recall_at as recall_at,
)
from .methods import (
    METHODS as METHODS,
    Equipment as Equipment,
    Limits as Limits,
    Method as Method,
    find_method as find_method,
)
