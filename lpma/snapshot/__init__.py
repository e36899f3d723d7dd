"""What leaves: snapshots in CSR, how they are made, shown and exported, and images of files."""
