# The store with Kafka and its page, for compose.yaml; with Ray for compose-cluster.yaml. CPU only.
FROM python:3.12-slim
ARG EXTRAS=kafka,serve
RUN useradd --create-home lpma && install --directory --owner lpma /state /kept
COPY pyproject.toml README.md LICENSE /src/
COPY lpma /src/lpma
COPY algorithms /src/algorithms
COPY ingest /src/ingest
RUN pip install --no-cache-dir "/src[$EXTRAS]" && rm -r /src
USER lpma
# Kernels are compiled now, for this processor. They lie beside the state: on another processor the
# first start compiles them again, behind the stream, and the volume keeps them.
ENV LPMA_CACHE=/state/cache
RUN lpma compile
VOLUME /state
ENTRYPOINT ["lpma"]
CMD ["--help"]
