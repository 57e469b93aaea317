"""The answer as one HTML file that opens offline: nothing in it is fetched from anywhere."""

from __future__ import annotations

from .page import html_page

__all__ = ["html_page"]
