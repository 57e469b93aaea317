"""An input format: CUDA C++ in which ``{{NAME}}`` stands for a macro's value (files that end in .cu.in)."""

from __future__ import annotations

import re

from drywarp.frontends.cuda.compile import CudaOptions
from drywarp.frontends.formats import Format, Source, formats
from drywarp.frontends.loaded import Loaded


def is_template(source: Source) -> bool:
    """By the name of the file."""
    return str(source.given).endswith(".cu.in")


def load_template(source: Source, arch: str, entry: str | None, options: CudaOptions) -> Loaded:
    """Fill the template in, then compile the text as CUDA C++."""
    text = re.sub(r"{{(\w+)}}", r"\1", source.text)
    cuda = formats()[-1]
    return cuda.load(Source(text, text.encode(), text, source.comment), arch, entry, options)


TEMPLATE = Format("CUDA C++ template", "", is_template, load_template)
