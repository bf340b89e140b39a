from .markdown import language_markdown as language_markdown
from .page import language_html as language_html
