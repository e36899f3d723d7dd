"""The truss paper's own program, chosen by `method="affected"`; ours are one folder up."""
