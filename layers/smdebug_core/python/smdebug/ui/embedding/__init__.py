"""The page as one file of HTML: its scripts, and with them every answer that it would have requested."""

from smdebug.ui.embedding.content import Content, content_of
from smdebug.ui.embedding.page import page_of

__all__ = ["Content", "content_of", "page_of"]
