"""The HTTP service: a running pipeline, or a saved store, for clients without Kafka and for people.

    routes.py      the table of endpoints                    openapi.py         its document
    messages.py    what requests and answers hold            problems.py        errors (RFC 9457)
    app.py         the application, behind its guard         context.py         what endpoints share
    queries.py     edges, neighbours, degrees, hops          codecs.py          JSON, msgpack, Arrow
    media.py       forms, by media type                      arrow_input.py     Arrow, not trusted
    query_queue.py many questions as one                     answering.py       answered together
    pages.py       answers in pages                          beside.py          work that takes long
    updates.py     records into the log                      update_codecs.py   bodies as records
    writer.py      many with one sync                        snapshot_forms.py  Arrow, NumPy's
    snapshot.py    the graph at one version                  runs.py            algorithms
    events.py      what happens, as it happens               watching.py        distributions
    page.py        the live page, whose files are in page/   health.py          for orchestrators
    server.py      uvicorn in a thread, and who gets in      connection.py      what clients may do
    security.py    tokens, hosts, origins, sizes             exchange.py        bodies, load
    stored.py      a saved store                             sampling.py        figures as events

Questions are answered by the pipeline's thread between two batches
(`ingest/pipeline/graph_requests.py`), many at once; everything else, from parsing to encoding,
happens in the service's own threads. What takes long is computed there from a copy, and given up
when nobody waits for it any more. Requires the extra [serve].
"""
