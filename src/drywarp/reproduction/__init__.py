"""Every number of the papers that can be computed again from what the papers print."""
