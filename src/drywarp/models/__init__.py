"""All models behind one interface; importing this package registers those that drywarp brings."""

from __future__ import annotations

from . import pipeline, roofline, volkov
from .base import CurvePoint, Model, NotApplicable, Prediction, get_model, model_names, register

__all__ = [
    "CurvePoint",
    "Model",
    "NotApplicable",
    "Prediction",
    "get_model",
    "model_names",
    "pipeline",
    "register",
    "roofline",
    "volkov",
]
