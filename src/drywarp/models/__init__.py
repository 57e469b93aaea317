"""All models behind one interface; importing this package registers those that drywarp brings."""

from __future__ import annotations

from . import (
    boat_hull,
    gpumech_models,
    gpuperf,
    mdm,
    mwp_cwp,
    mwp_cwp_2009_model,
    mwp_cwp_corrected,
    pipeline,
    roofline,
    roofline_mix,
    transit,
    volkov,
    wfg,
    wfg_corrected,
    x_model,
)
from .base import CurvePoint, Model, NotApplicable, Prediction, get_model, model_names, register

__all__ = [
    "CurvePoint",
    "Model",
    "NotApplicable",
    "Prediction",
    "boat_hull",
    "get_model",
    "gpumech_models",
    "gpuperf",
    "mdm",
    "model_names",
    "mwp_cwp",
    "mwp_cwp_2009_model",
    "mwp_cwp_corrected",
    "pipeline",
    "register",
    "roofline",
    "roofline_mix",
    "transit",
    "volkov",
    "wfg",
    "wfg_corrected",
    "x_model",
]
