"""How long, by which theory?

All models behind one interface. A model is a file of this folder, or of another package that names it under the entry
point group ``drywarp.models`` (docs/extending.md); loading it registers it.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .base import CurvePoint, Model, NotApplicable, Prediction, get_model, model_names, register

for _file in iter_modules(__path__):
    import_module(f".{_file.name}", __name__)

__all__ = ["CurvePoint", "Model", "NotApplicable", "Prediction", "get_model", "model_names", "register"]
