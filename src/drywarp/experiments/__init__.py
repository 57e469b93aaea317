"""What do many rows show? Sweeps, validation, measurement, calibration, whole folders, and the papers' numbers."""
