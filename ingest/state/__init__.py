"""What survives a crash: checkpoints, the journal of what came after, and vertex names."""
