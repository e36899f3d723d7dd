"""The public graphs known by name: where each comes from, how its file is read, whom to cite.

`shape` says how the edges of the graph are read:

    directed     a line is an arc
    undirected   a line is an edge
    both ways    undirected, and the file has each edge in both directions; one of them is kept
    bipartite    left ids and right ids are counted apart; the right follow the left in the graph

`layout` is "file" (`columns` names the fields of text, or says which names of its header are ours;
None: the file says it), "konect" (a tar.bz2 with a text file `out.NAME`) or "npz": the source's own
file cannot be read here, so that the graph must be converted and put into LPMA_DATA or the cache.
`sha256` is that of the reference `NAME.npz`, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

CITE_SNAP = "J. Leskovec, A. Krevl: SNAP Datasets, https://snap.stanford.edu/data, 2014"
CITE_KONECT = "J. Kunegis: KONECT, the Koblenz Network Collection, WWW Companion 2013"
CITE_LAW = "P. Boldi, S. Vigna: The WebGraph Framework I, WWW 2004; https://law.di.unimi.it"
CITE_DIMACS = "C. Demetrescu, A. Goldberg, D. Johnson: 9th DIMACS Implementation Challenge, 2006"
CITE_JODIE = "S. Kumar, X. Zhang, J. Leskovec: JODIE, KDD 2019"
CITE_LIGHTGCN = "X. He et al.: LightGCN, SIGIR 2020; E. Cho et al.: Gowalla, KDD 2011"

PAIR, TIMED = "src dst", "src dst time"


@dataclass(frozen=True)
class Dataset:
    """A public graph: see the module's text for `shape` and `layout`."""

    name: str
    url: str  # of the file, or of the page that describes it (layout "npz")
    citation: str
    shape: str = "directed"
    layout: str = "file"
    columns: str | dict[str, str] | None = PAIR
    edges: int = 0  # lines of the file, about
    sha256: str | None = None

    @property
    def directed(self) -> bool:
        return self.shape in ("directed", "bipartite")


def _snap(
    file: str,
    edges: int,
    shape: str = "directed",
    columns: str = PAIR,
    name: str = "",
    sha256: str | None = None,
) -> Dataset:
    base = file.rpartition("/")[2].removesuffix(".gz").removesuffix(".txt").removesuffix(".ungraph")
    url = f"https://snap.stanford.edu/data/{file}"
    return Dataset(name or base, url, CITE_SNAP, shape, "file", columns, edges, sha256)


def _konect(
    internal: str, edges: int, shape: str, name: str, columns: str = "src dst weight time"
) -> Dataset:
    url = f"http://konect.cc/files/download.tsv.{internal}.tar.bz2"
    return Dataset(name, url, CITE_KONECT, shape, "konect", columns, edges)


def _road(area: str, edges: int, sha256: str | None = None) -> Dataset:
    base = "http://www.diag.uniroma1.it/challenge9/data/USA-road-d"
    url = f"{base}/USA-road-d.{area}.gr.gz"
    return Dataset(f"road-{area}", url, CITE_DIMACS, "both ways", "file", None, edges, sha256)


def _law(name: str, edges: int, shape: str = "directed", sha256: str | None = None) -> Dataset:
    page = "uk-2007-05@100000" if name == "uk-2007-05-100k" else name
    url = f"https://law.di.unimi.it/webdata/{page}/"
    return Dataset(name, url, CITE_LAW, shape, "npz", PAIR, edges, sha256)


_REFERENCE = [  # graphs with a reference NAME.npz
    _snap("CollegeMsg.txt.gz", 59_835, columns=TIMED,
          sha256="f1b5076b0c567f2b126f1db9919ac405d74c80a02ba91599a93357a4add420da"),
    _snap("ca-HepTh.txt.gz", 51_971, "both ways",
          sha256="7a3f6249afa4dff3cd9f1ff3abc97b9083a787e31e140f3732b10c1370cdc9e6"),
    _snap("cit-HepPh.txt.gz", 421_578,
          sha256="ad2978493a89c747c7a180578d43cdf7b4748b50e34097c8de9b0cb4b6842f2a"),
    _law("dblp-2010", 807_700, "undirected",
         sha256="31f1d1b6258bf6c06691b57cdd4913e0c779cdbaca5de44d2e83f757a35b9be7"),
    _snap("twitter_combined.txt.gz", 2_420_766, "both ways", name="ego-twitter",
          sha256="e48c21c2bdc5c38a2fb9235d57c94d5203c6558f4bedffd411a9fa8cde4fc4b0"),
    _snap("email-Enron.txt.gz", 367_662, "both ways",
          sha256="c55c4e58d665daca8c99125ea2f4e2e6109a9b5d6fea7bdfa92927cd9fa3666e"),
    _snap("email-Eu-core-temporal.txt.gz", 332_334, columns=TIMED,
          sha256="b60bb96adbb74957e6411371c67991313c6def756446368e729ca586adbbd7d1"),
    _snap("facebook_combined.txt.gz", 88_234, "undirected", name="facebook-combined",
          sha256="7fcc277ddbcb1aa30aed56ef51521359e08b92ef754145a29d9872bfb3ba9eaa"),
    _snap("p2p-Gnutella31.txt.gz", 147_892,
          sha256="cfa24d200044249dec7706c0c1f6ed7d27affd7f91d3bcff7142d710ce47048e"),
    _road("NY", 733_846, "1b95368d8968d42d57b0a277fd263ac6bb289dacf484c0da7a36e91713d00870"),
    Dataset("soc-sign-bitcoinotc", "https://snap.stanford.edu/data/soc-sign-bitcoinotc.csv.gz",
            CITE_SNAP, "directed", "file", "src dst weight time", 35_592,
            "06e5e406c8740ffc609f74d2b73b755bad0ff208bf81927610e5c3107d05b15d"),
    _snap("sx-mathoverflow.txt.gz", 506_550, columns=TIMED,
          sha256="3e0cd41d58ba4ac08d42d42135d4a3db7d60b9e8ba6b93412038e5d858d896c5"),
    _law("uk-2007-05-100k", 3_050_615,
         sha256="e78aae91e527b6614b7488ead526d9d0edc772ee474a0aee6145eca9af929541"),
    _snap("wiki-Vote.txt.gz", 103_689,
          sha256="7c1266a678d2c1677be8e26927188d283145edff8b8ba9fdcb57012fc85fe741"),
    Dataset("bip-gowalla", "https://github.com/kuandeng/LightGCN", CITE_LIGHTGCN, "bipartite",
            "npz", PAIR, 1_027_370,
            "770a71cd3a66b76bb33caa49906274e56458cad9c7720244b87675c9d0d28569"),
    Dataset("bip-jodie-wikipedia", "http://snap.stanford.edu/jodie/wikipedia.csv", CITE_JODIE,
            "bipartite", "file", {"src": "user_id", "dst": "item_id", "time": "timestamp"}, 157_474,
            "afc11818ee649cb690855dac460dada37460dd773075f7f5e295b4c0feff162a"),
    Dataset("bip-southern-women", "http://konect.cc/files/download.tsv.brunson_southern-women.tar.bz2",
            CITE_KONECT, "bipartite", "konect", PAIR, 89,
            "8ba0cd7e01f55c966e5e85969145ea33828539bbd3e7b2ee7e7ba253c119f7f4"),
]  # fmt: skip

_LARGER = [
    _snap("as-skitter.txt.gz", 11_095_298, "undirected"),
    _snap("cit-Patents.txt.gz", 16_518_948),
    _snap("amazon0601.txt.gz", 3_387_388),
    _snap("soc-Epinions1.txt.gz", 508_837),
    _snap("soc-Slashdot0902.txt.gz", 948_464),
    _snap("soc-LiveJournal1.txt.gz", 68_993_773),
    _snap("soc-pokec-relationships.txt.gz", 30_622_564, name="soc-pokec"),
    _snap("web-BerkStan.txt.gz", 7_600_595),
    _snap("web-Google.txt.gz", 5_105_039),
    _snap("wiki-Talk.txt.gz", 5_021_410),
    _snap("roadNet-CA.txt.gz", 5_533_214, "both ways"),
    _snap("roadNet-PA.txt.gz", 3_083_796, "both ways"),
    _snap("roadNet-TX.txt.gz", 3_843_320, "both ways"),
    _snap("bigdata/communities/com-amazon.ungraph.txt.gz", 925_872, "undirected"),
    _snap("bigdata/communities/com-dblp.ungraph.txt.gz", 1_049_866, "undirected"),
    _snap("bigdata/communities/com-youtube.ungraph.txt.gz", 2_987_624, "undirected"),
    _snap("bigdata/communities/com-lj.ungraph.txt.gz", 34_681_189, "undirected"),
    _snap("bigdata/communities/com-orkut.ungraph.txt.gz", 117_185_083, "undirected"),
    _snap("bigdata/communities/com-friendster.ungraph.txt.gz", 1_806_067_135, "undirected"),
    _snap("sx-askubuntu.txt.gz", 964_437, columns=TIMED),
    _snap("sx-superuser.txt.gz", 1_443_339, columns=TIMED),
    _snap("sx-stackoverflow.txt.gz", 63_497_050, columns=TIMED),
    _snap("wiki-talk-temporal.txt.gz", 7_833_140, columns=TIMED),
    _road("BAY", 800_172),
    _road("CAL", 4_657_742),
    _road("CTR", 34_292_496),
    _road("USA", 58_333_344),
    _konect("youtube-u-growth", 9_375_374, "undirected", "konect-youtube-growth"),
    _konect("flickr-growth", 33_140_017, "directed", "konect-flickr-growth"),
    _konect("wikipedia-growth", 39_953_145, "directed", "konect-wikipedia-growth"),
    _konect("actor-movie", 1_470_404, "bipartite", "konect-actor-movie", PAIR),
    _konect("dblp-author", 8_649_016, "bipartite", "konect-dblp-author", PAIR),
    _law("in-2004", 16_917_053),
    _law("uk-2002", 298_113_762),
    _law("indochina-2004", 194_109_311),
    _law("arabic-2005", 639_999_458),
    _law("it-2004", 1_150_725_436),
    _law("hollywood-2009", 113_891_327, "both ways"),
    _law("ljournal-2008", 79_023_142),
]

CATALOG = {dataset.name: dataset for dataset in [*_REFERENCE, *_LARGER]}
