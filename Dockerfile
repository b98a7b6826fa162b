# swecli in a container that is its sandbox: another user than root, no key inside, the project mounted at /workspace.
#
#   docker build --tag swecli .
#   docker run --rm -it -v "$PWD:/workspace" -v swecli:/home/user -e ANTHROPIC_API_KEY swecli
ARG BASE=docker.io/library/python:3.13-slim-bookworm
FROM ${BASE} AS build
COPY pyproject.toml README.md LICENSE /src/
COPY swecli /src/swecli
COPY share /src/share
COPY .swecli.example /src/.swecli.example
RUN python3 -m venv /opt/swecli \
    && /opt/swecli/bin/python -m pip install --no-cache-dir --disable-pip-version-check '/src[images]' \
    && /opt/swecli/bin/python -m pip uninstall --yes pip

FROM ${BASE}
LABEL org.opencontainers.image.title="swecli" \
    org.opencontainers.image.source="https://github.com/swecli/swecli" \
    org.opencontainers.image.licenses="MIT"
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git less \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 --shell /bin/bash user \
    && install --directory --owner user --group user /workspace /home/user/.config /home/user/.config/swecli
COPY --from=build /opt/swecli /opt/swecli
# The container contains the commands; nested sandboxes are usually blocked in one. IS_SANDBOX tells swecli so.
COPY --chown=user:user integrations/container/config.toml /home/user/.config/swecli/config.toml
ENV PATH=/opt/swecli/bin:$PATH \
    LANG=C.UTF-8 \
    IS_SANDBOX=1
USER 1000:1000
WORKDIR /workspace
ENTRYPOINT ["swecli"]
