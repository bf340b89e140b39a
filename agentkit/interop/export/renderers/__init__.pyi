from .formats import (
    FORMATS as FORMATS,
)
from .formats import (
    Format as Format,
)
from .formats import (
    render as render,
)
from .gemini import (
    gemini_names as gemini_names,
)
from .gemini import (
    render_gemini as render_gemini,
)
from .markdown_pages import render_markdown as render_markdown
from .providers import (
    render_anthropic as render_anthropic,
)
from .providers import (
    render_json_schema as render_json_schema,
)
from .providers import (
    render_mcp as render_mcp,
)
from .providers import (
    render_openai_chat as render_openai_chat,
)
from .providers import (
    render_openai_responses as render_openai_responses,
)
from .python_stubs import render_python_stubs as render_python_stubs
from .rendering import (
    Loss as Loss,
)
from .rendering import (
    Renderer as Renderer,
)
from .rendering import (
    Rendering as Rendering,
)
