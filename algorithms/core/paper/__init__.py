"""The programs that the k-core papers compare, chosen by `method=`. Ours are one folder up.

cpu.py            "bz", "park", "pkc", "h-index"
cuda.py, peel.cu  "peel" and its variants, "vector"
"""
