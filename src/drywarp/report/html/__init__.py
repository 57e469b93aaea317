"""The result as one self-contained HTML file that opens offline and fetches nothing."""

from __future__ import annotations

from .page import html_page

__all__ = ["html_page"]
