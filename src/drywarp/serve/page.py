"""The page: one document with its script and style inside; what a browser may do there is said in its policy."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files

from ..errors import UsageError
from ..hardware import gpu_names, load_gpu
from ..pipeline.reasons import REASONS
from ..report.html.colours import REASON_COLOURS
from ..report.html.payload import json_for_script

SHARED = ("core.js", "charts.js", "profile_data.js", "profile_draw.js", "profile.js")
"""Scripts of the HTML report that the page shows its curve and execution profile with."""


def offered_gpus() -> list[tuple[str, str]]:
    """Names and titles of GPUs that CUDA C++ is compiled for."""
    known = [(name, load_gpu(name)) for name in gpu_names()]
    return [(name, gpu.title) for name, gpu in known if not gpu.is_amd and not name.startswith("papers/")]


def page() -> tuple[bytes, str]:
    """The document in UTF-8, and its Content-Security-Policy. Raises UsageError where Jinja2 is not installed."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError:
        raise UsageError("drywarp serve needs Jinja2: pip install jinja2") from None
    ours, theirs = files(__package__), files("drywarp.report.html")
    style = "".join(
        folder.joinpath(name).read_text(encoding="utf-8")
        for folder, name in ((theirs, "report.css"), (ours, "serve.css"))
    )
    script = "".join(theirs.joinpath(name).read_text(encoding="utf-8") for name in SHARED)
    script += ours.joinpath("serve.js").read_text(encoding="utf-8")
    none = {"type": "u8", "data": ""}
    columns = dict.fromkeys(("step", "duration", "warp", "block", "node", "reason", "awaited"), none)
    start = {
        "clock": 1.0,
        "model": "as chosen",
        "mainModels": ["as chosen", "as it is"],
        "here": 1,
        "reasons": list(REASONS),
        "reasonColours": REASON_COLOURS,
        "curves": [
            {"model": "as chosen", "summary": "what the sliders say", "points": []},
            {"model": "as it is", "summary": "the kernel without changes", "points": []},
        ],
        "code": {"index": [], "text": [], "line": []},
        "events": {
            "count": 0, "total": 0, "ticks_per_cycle": 1, "partitions": 1, "warps_per_block": 1,
            "lanes": [], "nodes": [], "opcodes": {}, "columns": columns,
        },
    }  # fmt: skip
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(ours.joinpath("page.html").read_text(encoding="utf-8"))
    html = template.render(
        style=Markup(style), script=Markup(script), data=Markup(json_for_script(start)), gpus=offered_gpus()
    )
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html.encode("utf-8"), policy


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")
