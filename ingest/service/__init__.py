"""The HTTP service: a running pipeline, or a saved store, for clients without Kafka and for people.

    app.py         the routes, and errors as documents          context.py   what endpoints share
    queries.py     edges, neighbours, degrees, hops             asking.py    many questions as one
    bodies.py      JSON, msgpack, Arrow                         pages.py     answers in pages
    updates.py     records into the log                         writer.py    many with one sync
    snapshot.py    the graph at one version                     runs.py      algorithms
    events.py      what happens, as it happens                  watching.py  distributions
    page.py        the live page, whose files are in page/      health.py    for orchestrators
    server.py      uvicorn in a thread                          protocol.py  time-outs, connections
    guard.py       tokens, origins, sizes                       problems.py  errors (RFC 9457)
    stored.py      a saved store

Questions are answered by the pipeline's thread between two batches
(`ingest/pipeline/graph_requests.py`), many at once; everything else, from parsing to encoding,
happens in the service's own threads. What takes long is computed there from a copy, and given up
when nobody waits for it any more. Requires the extra [serve].
"""
