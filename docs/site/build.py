"""Builds the site with MkDocs, and reads the result as a browser would that has no network."""

from __future__ import annotations

import logging
from pathlib import Path

from mkdocs.commands.build import build as mkdocs_build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from .built import problems_of

CONFIG = Path(__file__).with_name("mkdocs.yml")


class _Kept(logging.Handler):
    """Keeps warnings and errors."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(" ".join(record.getMessage().split()))


def build(folder: Path) -> list[str]:
    """Build into `folder`; a line for everything that is wrong with the pages."""
    kept = _Kept()
    logger = logging.getLogger("mkdocs")
    logger.addHandler(kept)
    try:
        config = load_config(str(CONFIG), site_dir=str(folder))
        mkdocs_build(config)
    except Abort as error:
        return kept.lines or [str(error)]
    finally:
        logger.removeHandler(kept)
    return kept.lines + problems_of(folder)
