"""Recomputes every number in the papers that follows from what the papers print."""
