"""The experiments. Each module has a `run(setting) -> Report`; a name here is a name to call."""
