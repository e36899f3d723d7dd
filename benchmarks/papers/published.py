"""Figures quoted from the papers, of systems that are not ours to run. Nothing here was measured.

Core numbers (Tables III and V, on a Tesla P100): milliseconds, and peak megabytes. None: it ran out
of memory, or did not finish within an hour.

Structural diversity (Tables 2 to 4, on four Tesla V100 and a processor of six cores): seconds,
k = 4, t = 100. The paper's Tables 2 and 3 disagree on Orkut's core model, 2284.2 and 2384.2.

Bicliques (Tables III to V, on an RTX 3090): seconds, (8, 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NOT_RUN = float("nan")
BEYOND = float("inf")  # ten hours

Columns = Mapping[str, Sequence[float | None]]  # by system or method: a value for each graph
Table = Mapping[tuple[str, str], Sequence[float]]  # by model and graph: a value for each program


def by_graph(columns: Columns, graphs: Sequence[str]) -> list[dict[str, Any]]:
    """Rows for a report, of a table that is written by columns."""
    return [
        {"graph": f"{graph} (published)"} | {name: values[i] for name, values in columns.items()}
        for i, graph in enumerate(graphs)
    ]


def by_model(table: Table, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Rows for a report, of a table that is written by rows."""
    return [
        {"graph": f"{graph} (published)", "model": model, **dict(zip(columns, values, strict=True))}
        for (model, graph), values in table.items()
    ]


CORE_GRAPHS = (
    "amazon0601", "wiki-Talk", "web-Google", "web-BerkStan", "as-skitter", "patentcite", "in-2004",
    "dblp-author", "wb-edu", "soc-LiveJournal1", "wikipedia-link-de", "hollywood-2009",
    "com-orkut", "trackers", "indochina-2004", "uk-2002", "arabic-2005", "uk-2005",
    "webbase-2001", "it-2004",
)  # fmt: skip
CORE_TABLE_3_MS: Columns = {
    "Medusa-MPM": (34835, None, 44423, None, None, 7964, None, 15110, None, 3128970)
    + (None,) * 10,
    "Medusa-Peel": (588, 12657, 1986, 38141, 22665, 17290, 37089, 2209, 187674, 181851, 598142,
                    455682, 929049, None, 2455986, 1596779, None, None, None, None),
    "Gunrock": (38, 1236, 127, 822, 723, 1282, 2577, 233, 10880, 7567, 54046, 26442, 10800, 208473,
                248785, 44604, None, None, None, None),
    "GSwitch": (30, 168, 62, 309, 238, 319, 523, 78, 5096, 1343, 1240, 1077, 1635, 5072, 10278,
                11070, 35190, 23914, None, None),
}  # fmt: skip
CORE_TABLE_5_MB: Columns = {
    "Medusa-MPM": (427, None, 521, None, None, 1137, None, 959, None, 2353) + (None,) * 10,
    "Medusa-Peel": (429, 579, 527, 635, 861, 1161, 959, 993, 2645, 2387, 3935, 2927, 5751, None,
                    7391, 12707, None, None, None, None),
    "Gunrock": (325, 511, 467, 559, 745, 991, 829, 855, 2223, 2015, 3307, 5097, 4815, 6131, 8851,
                10597, None, None, None, None),
    "GSwitch": (253, 663, 611, 647, 747, 897, 767, 531, 1529, 1329, 1809, 1423, 2401, 3519, 3057,
                5095, 9679, 13697, None, None),
}  # fmt: skip

DIVERSITY_TABLE_2_COLUMNS = (
    "CPU-Div",
    "MCPU-Div",
    "GPU-Div",
    "MGPU-Div",
    "MGPU-Div-E",
    "MGPU-Div-D",
)
DIVERSITY_TABLE_2: Table = {
    ("component", "Wiki-Vote"): (2.93, 2.08, 1.95, 1.88, 1.85, 1.81),
    ("component", "Email-Enron"): (4.16, 3.75, 2.42, 2.27, 2.16, 2.07),
    ("component", "Epinions"): (9.79, 7.59, 5.83, 4.09, 4.03, 3.92),
    ("component", "Gowalla"): (17.99, 12.32, 8.21, 4.73, 3.87, 3.63),
    ("component", "NotreDame"): (19.83, 13.78, 10.07, 6.76, 6.47, 5.66),
    ("component", "socfb-konect"): (6.74, 5.17, 4.03, 3.88, 3.57, 3.2),
    ("component", "LiveJournal"): (1243.71, 746.93, 637.82, 307.28, 293.6, 275.71),
    ("component", "Orkut"): (8682.24, 4863.72, 3839.56, 1977.36, 1923.7, 1870.3),
    ("core", "Wiki-Vote"): (3.54, 2.93, 2.88, 2.63, 2.61, 2.57),
    ("core", "Email-Enron"): (7.81, 5.64, 4.22, 3.65, 3.57, 3.44),
    ("core", "Epinions"): (16.43, 12.34, 10.38, 8.09, 7.64, 7.54),
    ("core", "Gowalla"): (25.9, 14.5, 9.7, 4.9, 4.04, 3.92),
    ("core", "NotreDame"): (32.59, 20.87, 14.72, 7.92, 7.79, 7.37),
    ("core", "socfb-konect"): (10.37, 7.68, 6.46, 5.87, 5.49, 4.99),
    ("core", "LiveJournal"): (1732.1, 994.6, 672.2, 353.2, 298.7, 267.5),
    ("core", "Orkut"): (10609.2, 5473.7, 4965.4, 2836.6, 2380.7, 2284.2),
    ("truss", "Wiki-Vote"): (8.91, 6.78, 4.75, 3.47, 3.41, 3.38),
    ("truss", "Email-Enron"): (12.82, 8.95, 6.78, 5.53, 5.36, 4.69),
    ("truss", "Epinions"): (34.83, 25.27, 19.69, 13.92, 13.07, 12.31),
    ("truss", "Gowalla"): (54.7, 38.4, 28.9, 19.7, 17.6, 16.5),
    ("truss", "NotreDame"): (297.4, 155.29, 116.4, 109.12, 98.36, 89.49),
    ("truss", "socfb-konect"): (17.22, 12.15, 9.49, 6.86, 6.23, 5.96),
    ("truss", "LiveJournal"): (10302.8, 6590.5, 6321.2, 4824.6, 3987.2, 3669.9),
    ("truss", "Orkut"): (19023.6, 12082.7, 11243.8, 7628.5, 7022.4, 6590.6),
}
DIVERSITY_TABLE_3_COLUMNS = ("BC-Div", "PGL-Div", "MGPU-Div-D")
DIVERSITY_TABLE_3: Table = {
    ("core", "Gowalla"): (12.43, NOT_RUN, 3.92),
    ("core", "LiveJournal"): (702.32, NOT_RUN, 267.5),
    ("core", "Orkut"): (5121.11, NOT_RUN, 2384.2),
    ("truss", "Gowalla"): (NOT_RUN, 39.24, 16.52),
    ("truss", "LiveJournal"): (NOT_RUN, 6644.98, 3669.89),
    ("truss", "Orkut"): (NOT_RUN, 12352.7, 6590.63),
}
DIVERSITY_TABLE_4_COLUMNS = ("CPU-Div", "MCPU-Div", "MGPU-Div")
DIVERSITY_TABLE_4: Table = {
    ("truss", "Gowalla"): (10.7, 8.6, 2.8),
    ("truss", "LiveJournal"): (1021.3, 637.2, 275.1),
    ("truss", "Orkut"): (4218.7, 3629.6, 1456.5),
}

BICLIQUE_TABLE_3: Columns = {
    "no reorder": (1.90, 14.00, 3.64, 0.15, 10.30, 5.64, BEYOND, 1251.01, 4.01, 4.65),
    "Gorder": (1.15, 3.29, 1.62, 0.04, 3.61, 2.19, 17488.60, 946.36, 2.47, 2.59),
    "Border": (0.87, 2.99, 1.45, 0.03, 2.25, 1.61, 7753.15, 669.98, 2.29, 2.36),
}
BICLIQUE_TABLE_4: Columns = {
    "no balance": (0.14, 5.38, 8.02, BEYOND, 3941.55),
    "pre-runtime": (0.03, 2.52, 3.19, 9071.55, 804.31),
    "runtime": (0.05, 3.86, 7.83, BEYOND, 2967.25),
    "joint": (0.07, 2.36, 2.99, 7753.15, 669.98),
}
BICLIQUE_TABLE_5: Columns = {
    "HTB": (0.001, 0.008, 0.001, 0.007, 0.013, 0.031, 0.172, 0.007, 6e-4, 6e-4),
    "reorder": (0.18, 1.47, 0.46, 0.88, 2.96, 8.87, 62.17, 43.74, 0.45, 0.45),
    "counting": (0.87, 2.99, 1.45, 0.03, 2.25, 1.61, 7753.15, 669.98, 2.29, 2.36),
}
BICLIQUE_GRAPHS = ("YT", "BC", "GH", "SO", "YL", "ID", "LF", "FR", "S1", "S2")
BICLIQUE_GRAPHS_OF_TABLE_4 = ("SO", "S2", "BC", "LF", "FR")
