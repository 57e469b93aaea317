"""What-ifs: each makes of a setting another one, in which something costs nothing or less. Pure functions."""
