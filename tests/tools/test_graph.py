"""query_graph, and search_knowledge's way through the relation graph (sections 5 and 8)."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.store import Store

Triple = tuple[str, str, str]


def relations(*triples: Triple | str) -> list[dict[str, str]]:
    """Relations from triples, or from "src rel dst"."""
    split = (triple.split() if isinstance(triple, str) else triple for triple in triples)
    return [dict(zip(("src", "rel", "dst"), triple, strict=True)) for triple in split]


def triples(edges: list[dict[str, str]]) -> list[Triple]:
    return [(edge["src"], edge["rel"], edge["dst"]) for edge in edges]


def spelled(edges: list[dict[str, str]]) -> list[str]:
    return [" ".join(triple) for triple in triples(edges)]


def distances(edges: list[Triple], start: str) -> dict[str, int]:
    """How many hops each node is from `start`, edges taken in both directions."""
    far = {start: 0}
    frontier = [start]
    for node in frontier:
        for src, _, dst in edges:
            for near, other in ((src, dst), (dst, src)):
                if near == node and other not in far:
                    far[other] = far[node] + 1
                    frontier.append(other)
    return far


def test_an_edge_is_shown_from_both_its_ends_with_its_direction(store: Store) -> None:
    store.put("text", id="d", relations=relations("A knows B"))
    edge = {"src": "A", "rel": "knows", "dst": "B", "doc_id": "d"}
    expected = {"nodes": ["A", "B"], "edges": [edge], "truncated": False}
    assert store.ask("query_graph", node="A") == expected
    assert store.ask("query_graph", node="B") == expected


def test_an_unknown_node_has_empty_lists_and_is_no_error(store: Store) -> None:
    store.put("text", relations=relations("A knows B"))
    for node in ("Z", "a", "A ", "knows", "text"):
        assert store.ask("query_graph", node=node) == {"nodes": [], "edges": [], "truncated": False}


def test_a_known_node_without_such_a_relation_is_told_from_an_unknown_one(store: Store) -> None:
    store.put("text", relations=relations("A knows B"))
    for node in ("A", "B"):
        assert store.ask("query_graph", node=node, rel="owns") == {
            "nodes": [node],
            "edges": [],
            "truncated": False,
        }


@pytest.mark.parametrize(
    ("depth", "edges"),
    [
        (1, ["A a A", "A x B", "B y A"]),
        (2, ["A a A", "A x B", "B y A", "B z C"]),
        (3, ["A a A", "A x B", "B y A", "B z C", "C z D"]),
    ],
)
def test_loops_and_cycles_are_met_once_at_their_smallest_depth(store, depth, edges) -> None:
    store.put("x", relations=relations("A x B", "B y A", "A a A", "B z C", "C z D", "D z E"))
    answer = store.ask("query_graph", node="A", depth=depth)
    assert sorted(spelled(answer["edges"])) == edges
    assert answer["nodes"] == sorted({"A", "B", "C", "D"})[: depth + 1]


def test_depth_is_one_hop_where_it_is_left_out(store: Store) -> None:
    store.put("x", relations=relations("A x B", "B x C"))
    assert spelled(store.ask("query_graph", node="A")["edges"]) == ["A x B"]


def test_only_the_relation_that_is_asked_for_is_followed(store: Store) -> None:
    store.put("x", relations=relations("A x B", "B y C", "B x D", "C x E", "A X F"))
    answer = store.ask("query_graph", node="A", depth=3, rel="x")
    assert spelled(answer["edges"]) == ["A x B", "B x D"]
    assert answer["nodes"] == ["A", "B", "D"]


def test_nodes_are_sorted_by_codepoint(store: Store) -> None:
    names = ["b", "B", "é", "日", "10", "9", "🎵", "\uffee"]
    store.put("x", relations=relations(*((("A", "x", name)) for name in names)))
    assert store.ask("query_graph", node="A")["nodes"] == sorted(["A", *names])


NAMES = [
    "TideGauge",
    "tidegauge",
    " TideGauge ",
    "Tide  Gauge",
    "ＴｉｄｅＧａｕｇｅ",
    "Br\u00fccke",
]
NAMES += ["Bru\u0308cke", "C", "C++", "C#", "HTTP", "HTTPS", "US", "us", "%", "_", "'", "a b"]


def test_names_are_compared_codepoint_for_codepoint(store: Store) -> None:
    store.put(
        "x", relations=relations(*((name, "is", f"node {n}") for n, name in enumerate(NAMES)))
    )
    for n, name in enumerate(NAMES):
        assert triples(store.ask("query_graph", node=name)["edges"]) == [(name, "is", f"node {n}")]


def test_the_same_fact_of_two_documents_is_an_edge_of_each(store: Store) -> None:
    fact = relations("Aki works_at Mizuno")
    store.put("one", id="1", relations=fact)
    store.put("one", id="1", relations=fact)
    store.put("two", id="2", relations=fact + relations("Aki Works_At Mizuno"))
    edges = store.ask("query_graph", node="Aki")["edges"]
    assert sorted((edge["rel"], edge["doc_id"]) for edge in edges) == [
        ("Works_At", "2"),
        ("works_at", "1"),
        ("works_at", "2"),
    ]
    store.ask("delete_document", id="1")
    assert len(store.ask("query_graph", node="Aki")["edges"]) == 2
    store.ask("delete_document", id="2")
    assert store.ask("query_graph", node="Aki") == {"nodes": [], "edges": [], "truncated": False}
    assert store.ask("query_graph", node="Mizuno")["nodes"] == []


def star(store: Store, edges: int) -> None:
    """That many edges at the node `hub`, in documents of 100."""
    for first in range(0, edges, 100):
        numbers = range(first, min(first + 100, edges))
        store.put("x", relations=relations(*(f"hub to n{n:03}" for n in numbers)))


@pytest.mark.parametrize("edges", [499, 500, 501])
def test_at_most_500_edges_and_truncated_when_that_cut_any(store: Store, edges) -> None:
    star(store, edges)
    for node, depth in (("hub", 1), ("hub", 3), ("n007", 2)):
        answer = store.ask("query_graph", node=node, depth=depth)
        assert len(answer["edges"]) == min(edges, 500)
        assert answer["truncated"] is (edges > 500)


def test_the_nearest_edges_stay_when_some_are_cut(store: Store) -> None:
    star(store, 498)
    store.put("x", relations=relations("start a hub", "start z other", "other far away"))
    answer = store.ask("query_graph", node="start", depth=2)
    assert spelled(answer["edges"])[:2] == ["start a hub", "start z other"]
    assert len(answer["edges"]) == 500
    assert answer["truncated"] is True
    assert set(answer["nodes"]) == {name for t in triples(answer["edges"]) for name in (t[0], t[2])}


def test_a_dense_graph_is_walked_once(store: Store) -> None:
    names = [f"n{n:02}" for n in range(30)]
    for name in names:
        store.put("x", relations=relations(*(f"{name} to {other}" for other in names)))
    answer = store.ask("query_graph", node="n07", depth=3)
    assert (len(answer["edges"]), answer["truncated"]) == (500, True)
    assert len(set(triples(answer["edges"]))) == 500


EDGES = st.lists(
    st.tuples(st.sampled_from("ABCDEF"), st.sampled_from("xy"), st.sampled_from("ABCDEF")),
    max_size=12,
    unique=True,
)


@settings(max_examples=80)
@given(st.lists(EDGES, min_size=3, max_size=3), st.sampled_from("ABC"), st.integers(1, 3))
def test_any_graph_is_walked_as_a_plain_search_walks_it(graph, start, depth) -> None:
    store = WALKED
    for n, edges in enumerate(graph):
        store.put("x", id=f"d{n}", relations=relations(*edges))
    stated = [(*edge, f"d{n}") for n, edges in enumerate(graph) for edge in edges]
    for rel in (None, "x"):
        known = [edge for edge in stated if rel in (None, edge[1])]
        far = distances([edge[:3] for edge in known], start)
        expected = {
            edge: min(far[edge[0]], far[edge[2]])
            for edge in known
            if edge[0] in far and min(far[edge[0]], far[edge[2]]) < depth
        }
        answer = store.ask("query_graph", node=start, depth=depth, rel=rel)
        got = [tuple(edge.values()) for edge in answer["edges"]]
        assert set(got) == set(expected)
        assert len(got) == len(expected)
        assert [expected[edge] for edge in got] == sorted(expected.values())
        assert answer["truncated"] is False


@pytest.fixture(autouse=True, scope="module")
def _walked(shared: Store):
    """The store of the property test, which hypothesis cannot hand over example by example."""
    global WALKED
    WALKED = shared


# search_knowledge through the graph.


def related(store: Store, *ids: str, **more: object) -> dict:
    seeds = [store.seed(id) for id in ids]
    return store.ask("search_knowledge", seed_chunk_ids=seeds, **more)


def test_a_seeds_own_edges_come_first_and_then_what_shares_a_node(store: Store) -> None:
    store.put("seed", id="s", relations=relations("A x B", "C x D"))
    store.put("near", id="n", relations=relations("B x E", "F x C"))
    store.put("far", id="f", relations=relations("E x G"))
    store.put("farther", id="g", relations=relations("G x H"))
    store.put("apart", id="z", relations=relations("Y x Z"))
    answer = related(store, "s", mode="graph")
    assert [
        (edge["src"], edge["dst"], edge["doc_id"], edge["source"])
        for edge in answer["related_edges"]
    ] == [
        ("A", "B", "s", "graph"),
        ("C", "D", "s", "graph"),
        ("B", "E", "n", "graph"),
        ("F", "C", "n", "graph"),
        ("E", "G", "f", "graph"),
    ]
    assert answer["related_chunks"] == []
    assert answer["truncated"] is False
    assert list(answer["related_edges"][0]) == ["src", "rel", "dst", "doc_id", "source"]


def test_edges_of_all_seeds_come_before_their_neighbours(store: Store) -> None:
    store.put("one", id="1", relations=relations("A x B"))
    store.put("two", id="2", relations=relations("M x N"))
    store.put("near", id="n", relations=relations("A x Q", "N x Q"))
    edges = related(store, "2", "1")["related_edges"]
    assert [edge["doc_id"] for edge in edges] == ["2", "1", "n", "n"]


def test_two_chunks_of_one_document_are_seeds_of_the_same_edges(store: Store) -> None:
    store.put("amber " * 300, id="a", relations=relations("A x B"))
    edges = store.ask("search_knowledge", seed_chunk_ids=[2, 1, 3])["related_edges"]
    assert spelled(edges) == ["A x B"]


@pytest.mark.parametrize("own", [9, 10, 11, 100])
def test_never_more_edges_than_asked_for_and_truncated_says_when_cut(store: Store, own) -> None:
    store.put("seed", id="s", relations=relations(*(f"A x n{n:03}" for n in range(own))))
    for top in (own - 1, own, own + 1):
        if top <= 100:
            answer = related(store, "s", top_k=top)
            assert len(answer["related_edges"]) == min(top, own)
            assert answer["truncated"] is (own > top)
    store.put("near", id="n", relations=relations("n000 x further"))
    for top in range(own - 1, min(own + 2, 100) + 1):
        answer = related(store, "s", top_k=top)
        assert len(answer["related_edges"]) == min(top, own + 1)
        assert answer["truncated"] is (own + 1 > top)


def test_a_seed_without_relations_leads_nowhere(store: Store) -> None:
    store.put("seed", id="s")
    store.put("other", relations=relations("A x B"))
    for mode in ("auto", "graph", "vector", "both"):
        assert related(store, "s", mode=mode) == {
            "related_chunks": [],
            "related_edges": [],
            "truncated": False,
        }


def test_with_embeddings_off_the_graph_is_all_there_is(store: Store) -> None:
    store.put("seed", id="s", relations=relations("A x B"))
    assert len(related(store, "s", mode="auto")["related_edges"]) == 1
    assert len(related(store, "s", mode="both")["related_edges"]) == 1
    assert related(store, "s", mode="vector")["related_edges"] == []


def test_a_chunk_that_stage_1_finds_is_a_seed_for_stage_2(store: Store) -> None:
    store.put("the invoicing service", id="s", relations=relations("invoicing owned_by Aki"))
    store.put("Aki's notes", id="n", relations=relations("Aki works_at Mizuno"))
    seed = store.search("invoicing")[0]["matched_chunks"][0]["chunk_id"]
    edges = store.ask("search_knowledge", seed_chunk_ids=[seed])["related_edges"]
    assert [edge["doc_id"] for edge in edges] == ["s", "n"]


def test_the_same_graph_gives_the_same_order_whatever_order_it_was_stated_in(tmp_path) -> None:
    facts = relations(*(f"A r{n % 3} n{n}" for n in range(30)), "n3 x A", "n4 x n5")
    answers = []
    for seed in range(3):
        random.Random(seed).shuffle(facts)
        with Store(tmp_path / f"{seed}.db") as store:
            store.put("x", id="d", relations=facts)
            answers.append((store.ask("query_graph", node="A", depth=2), related(store, "d")))
    assert answers[0] == answers[1] == answers[2]
