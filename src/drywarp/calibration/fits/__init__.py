"""The papers' formulas, fitted to points: pure functions that know nothing of where the points come from."""
