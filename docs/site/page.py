"""A page that is made when the site is built."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """`uri` is its place among the sources of the site, such as ``gpus/a100.md``; `text` its Markdown."""

    uri: str
    title: str
    text: str
