"""People's own tables: read them, fit a model, predict with it, and compare it with others."""
