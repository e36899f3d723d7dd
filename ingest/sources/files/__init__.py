"""Files of edges as streams: SNAP text, csv, JSON lines, Matrix Market and `.npz`."""
