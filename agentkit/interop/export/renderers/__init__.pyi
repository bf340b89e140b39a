from .formats import (
    FORMATS as FORMATS,
    Format as Format,
    render as render,
)
from .gemini import (
    gemini_names as gemini_names,
    render_gemini as render_gemini,
)
from .markdown_pages import render_markdown as render_markdown
from .providers import (
    render_anthropic as render_anthropic,
    render_json_schema as render_json_schema,
    render_mcp as render_mcp,
    render_openai_chat as render_openai_chat,
    render_openai_responses as render_openai_responses,
)
from .python_stubs import render_python_stubs as render_python_stubs
from .rendering import (
    Loss as Loss,
    Renderer as Renderer,
    Rendering as Rendering,
)
