"""Bicliques of bipartite graphs: (p, q) of them counted (`counting`) and listed (`listing`)."""

from .counting import count_all_bicliques, count_bicliques
from .listing import Biclique, list_bicliques

__all__ = ["Biclique", "count_all_bicliques", "count_bicliques", "list_bicliques"]
