# Two images: karui, the proxy (the default), and watchdog (--target watchdog).
# docs/container.md says how to build and to run them; deploy/image holds the
# rules that this file is checked against.
#
# Debian 12, because that is what karui is developed and tested on. Its libheif
# holds the HEIC (x265) and AVIF (aom) encoders; on Debian 13 they are packages of
# their own that nothing depends on: libheif-plugin-x265 and libheif-plugin-aomenc.

FROM golang:1.26.10-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends libvips-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# Modules change seldom: this layer stays when only the code has changed.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=development
ARG COMMIT=unknown
RUN make bin/karui bin/karui-watchdog VERSION="$VERSION" COMMIT="$COMMIT" \
 && install -d -o 10002 -g 10002 -m 0700 /state

FROM scratch AS watchdog
ARG VERSION=development
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="karui-watchdog" \
      org.opencontainers.image.description="Puts the true origin first in a CloudFront origin group while karui is down" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build --chown=10002:10002 /state /var/lib/karui-watchdog
COPY --from=build /src/bin/karui-watchdog /usr/local/bin/karui-watchdog
USER 10002:10002
VOLUME ["/var/lib/karui-watchdog"]
STOPSIGNAL SIGTERM
# Whoever watches the watchdog is heartbeat_url: it also notices when this machine is gone.
HEALTHCHECK NONE
ENTRYPOINT ["/usr/local/bin/karui-watchdog"]
CMD ["run"]

FROM debian:bookworm-slim AS karui
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates libvips42 \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 karui \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin karui \
 && install -d -o 10001 -g 10001 -m 0700 /var/cache/karui
ARG VERSION=development
ARG COMMIT=unknown
LABEL org.opencontainers.image.title="karui" \
      org.opencontainers.image.description="Puts WebP in front of a site that knows nothing about WebP" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
COPY --from=build /src/bin/karui /usr/local/bin/karui
USER 10001:10001
# All that is written. The rest of the file system may be read-only.
VOLUME ["/var/cache/karui"]
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["/usr/local/bin/karui", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/karui"]
CMD ["serve"]
