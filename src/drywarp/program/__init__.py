"""What does a whole program launch, and when? Runs programs with no GPU: `drywarp run` (docs/run.md)."""
