"""The study: the paper's experiments, run again beside its own numbers."""
