"""The figures and tables of the five papers that this project builds on.

lpma/                   the store: Figures 8 to 14 and 16, on a device and, where it makes sense, on
                        the CPU
kcore.py                core numbers on GPUs: Tables II to V
truss.py                truss decomposition: what the slides show
diversity.py            structural diversity: Tables 2 to 5, Figures 8 to 10
biclique.py             biclique counting: Figures 7 to 10, Tables III to V
published.py            figures quoted from the papers, of systems that are not ours to run
"""
