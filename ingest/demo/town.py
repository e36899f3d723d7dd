"""A made-up town whose people write to each other: the demo's stream where no real one is there.

Idea: people belong to circles, such as a choir or an office, and most messages stay within one: a
planted partition (Condon and Karp, "Algorithms for graph partitioning on the planted partition
model", 2001), but for overlapping parts. A few people belong to many circles, no two of which share
anybody else. What was planted is what the analysis should find: the choir, in which everybody
writes to everybody, is the largest core, and the person with the most circles has the most social
contexts.

Twice a committee meets: for a little while its members, who are of different circles, all write to
each other. In the whole graph they are lost behind the choir; in a short window they stand out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from lpma.batch.columns import Columns, Kind

Ids = npt.NDArray[np.uint32]

MESSAGES = 500_000
WITHIN = 0.85  # share of the messages that stay within a circle
SEATS = 1.5  # in circles, for each person on average
SMALLEST, LARGEST = 8, 25  # members of a circle, the choir apart; LARGEST is not reached
CHOIR = 60
COMMITTEE = 40
MEETINGS = (0.4, 0.8)  # where they begin, in shares of the stream
MEETING = 0.02  # how long one is, as a share of the stream
CONNECTORS = (10, 7, 6, 5, 5)  # in how many circles the best connected people are
MEAN_GAP_MS = 20.0
START_MS = 1_700_000_000_000


def _listed(text: str, separator: str | None = None) -> list[str]:
    return [name for line in text.split("\n") if line for name in line.split(separator)]


GIVEN = _listed("""
Ada Akira Alma Amara Anders Anouk Aroha Arturo Bao Beatriz Bela Carmen Chidi Clara Dalia Davit
Dilnoza Edda Efua Emeka Esra Farid Fatima Femi Goran Greta Hana Haruki Hugo Ines Ingrid Isla
Ivan Jamila Joaquin Jonas Kaia Kamal Katya Kofi Lars Leila Lin Lucia Mahir Malia Marek Mei Mira
Nadia Nikos Noor Olga Omar Paloma Pavel Priya Rafael Rania Ravi Rosa Sami Sigrid Soren Tala
Tarek Tomas Uma Vera Viktor Wanjiru Wei Yara Yusuf Zoe
""")
FAMILY = _listed("""
Abara Adeyemi Almeida Andersen Arslan Bakker Bauer Benali Berg Castro Chen Costa Dahl Darwish
Diallo Duarte Eriksen Farouk Fischer Fontana Gupta Haddad Halvorsen Hassan Herrera Horvat Ito
Ivanov Jansen Kamau Kaplan Karimi Kato Keita Khan Kimura Kovacs Kruger Kumar Larsen Lehtonen
Lindqvist Lopez Maier Mbeki Mendoza Moreau Mwangi Nakamura Navarro Nguyen Novak Nowak Okafor
Olsen Osei Park Petrov Quispe Rahman Reyes Rossi Salah Santos Sato Silva Singh Suzuki Tanaka
Torres Traore Vargas Vega Weber Yilmaz Zhang
""")
PLACES = _listed(
    """
Harbour|Elm Street|Hilltop|Riverside|Old Mill|Market Square|Station|Chapel Lane|Northgate
Orchard|Lighthouse|Canal|Brickyard|Meadow|Castle|Southbank|Quarry|Fountain|Windmill|Ferry
""",
    "|",
)
KINDS = _listed(
    """
football club|reading circle|school board|bakery|theatre group|chess club|orchestra|rowing club
allotments|volunteers|print shop|clinic|running club|film society|workshop|dance class
dog walkers|parents' group|sewing circle|cycling club|debating society|garden club|brass band
language class|newsroom
""",
    "|",
)


@dataclass(frozen=True)
class Circle:
    """People who write to each other: `members` are rising ids."""

    name: str
    members: Ids


@dataclass(frozen=True)
class Town:
    """names: what each id goes by, a str each, no two the same. circles: the choir first.
    committee: who meets. messages: an append for each message, in time order."""

    names: npt.NDArray[np.object_]
    circles: list[Circle]
    committee: Circle
    messages: Columns


def make_town(messages: int = MESSAGES, seed: int = 1) -> Town:
    """A town of a person for each 40 messages, 200 people at least and at most as many as there are
    names.

    >>> town = make_town(20_000)
    >>> len(town.names), town.circles[0].name, len(town.messages)
    (500, 'the Harbour choir', 20000)
    """
    rng = np.random.default_rng(seed)
    every = [f"{given} {family}" for given, family in product(GIVEN, FAMILY)]
    people = min(max(200, messages // 40), len(every))
    names = np.array(every, object)[rng.permutation(len(every))[:people]]
    circles = _circles(rng, people)
    columns = _messages(rng, circles, people, messages)
    committee = _committee(rng, circles, people)
    _meet(rng, committee, columns)
    return Town(names, circles, committee, columns)


def _circles(rng: np.random.Generator, people: int) -> list[Circle]:
    members = [rng.permutation(people)[: min(CHOIR, 20 + people // 50)]]
    seats = np.concatenate((rng.permutation(people), rng.permutation(people)))
    seats = seats[: int(SEATS * people)]
    first = 0
    while first < len(seats):
        size = int(rng.integers(SMALLEST, LARGEST))
        members.append(np.unique(seats[first : first + size]))
        first += size
    _connect(rng, members)
    called = [f"the {place} {kind}" for place, kind in product(PLACES, KINDS)]
    order = rng.permutation(len(called)).tolist()
    names = ["the Harbour choir", *(called[place] for place in order)]
    return [
        Circle(name, np.unique(its).astype(np.uint32))
        for name, its in zip(names, members, strict=False)
    ]


def _connect(rng: np.random.Generator, members: list[npt.NDArray[np.int64]]) -> None:
    """Put a few people of the first circles into more of them, no two of which have anybody else
    in common: what else would join two circles around a person?"""
    for connector, wanted in enumerate(CONNECTORS):
        person = int(members[connector + 1][0])
        own = [its for its in members if person in its]
        met = np.concatenate(own)
        joined = len(own)
        for place in rng.permutation(np.arange(1, len(members))).tolist():
            if joined >= wanted:
                break
            if not np.isin(members[place], met).any():
                met = np.concatenate((met, members[place]))
                members[place] = np.append(members[place], person)
                joined += 1


def _messages(
    rng: np.random.Generator, circles: list[Circle], people: int, count: int
) -> Columns:  # fmt: skip
    """Each circle has as many messages as it has pairs, so that all pairs are equally busy; the
    rest pass between people drawn from the whole town."""
    sizes = np.array([len(circle.members) for circle in circles])
    starts = np.cumsum(sizes) - sizes
    members = np.concatenate([circle.members for circle in circles])
    pairs = sizes * (sizes - 1)
    circle = rng.choice(len(circles), count, p=pairs / pairs.sum())
    size, start = sizes[circle], starts[circle]
    one, other = _two_of(rng, size)
    src, dst = members[start + one], members[start + other]
    outside = rng.random(count) >= WITHIN
    strangers = _two_of(rng, np.full(int(outside.sum()), people))
    src[outside], dst[outside] = strangers
    time = np.cumsum(rng.exponential(MEAN_GAP_MS, count)).astype(np.int64) + START_MS
    return Columns.validated(int(Kind.INSERT), src, dst, None, time)


def _committee(rng: np.random.Generator, circles: list[Circle], people: int) -> Circle:
    """People who meet nobody of the choir or around a connector in their own circles, so that what
    was planted there stays as it was."""
    first = circles[: 1 + len(CONNECTORS)]
    taken = np.unique(np.concatenate([circle.members for circle in first]))
    free = np.setdiff1d(np.arange(people), taken)
    size = min(COMMITTEE, 8 + people // 100)
    return Circle("the festival committee", np.sort(rng.permutation(free)[:size]).astype(np.uint32))


def _meet(rng: np.random.Generator, committee: Circle, messages: Columns) -> None:
    """Let everybody of the committee write to everybody else at each meeting, in place of some of
    the messages of that while."""
    members = committee.members
    one, other = np.nonzero(~np.eye(len(members), dtype=bool))
    for begins in MEETINGS:
        start, length = (int(share * len(messages)) for share in (begins, MEETING))
        at = start + np.sort(rng.permutation(length)[: len(one)])
        order = rng.permutation(len(one))[: len(at)]
        messages.src[at], messages.dst[at] = members[one[order]], members[other[order]]


def _two_of(
    rng: np.random.Generator, size: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Two different numbers below each size."""
    one, other = rng.integers(size), rng.integers(size - 1)
    return one, other + (other >= one)
