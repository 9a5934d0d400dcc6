# Sourced. A container engine: the one that runs here and can have the base images, or else a private one of Debian's packages, with
# stand-ins for them (images.sh). Everything of the private one is in $ENGINE, and end_engine leaves nothing of it behind.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export HERE
. "$HERE/debian13.sh"
BASE_IMAGES=(node:24-bookworm-slim redis:7.4-bookworm clickhouse/clickhouse-server:26.7)

has_image() {
  docker image inspect "$1" >/dev/null 2>&1
}

# Whether the engine that runs here, if one does, has the base images or can pull them, and Docker Compose.
can_use_engine() {
  docker version >/dev/null 2>&1 && docker compose version >/dev/null 2>&1 || return 1
  for image in "${BASE_IMAGES[@]}"; do has_image "$image" || timeout 300 docker pull --quiet "$image" >/dev/null 2>&1 || return 1; done
}

# What a private engine needs and cannot bring; empty: nothing is missing.
missing_for_private_engine() {
  [ "$(uname -s)" = Linux ] && [ "$(id -u)" = 0 ] || { echo 'root on Linux'; return; }
  command -v apt-get >/dev/null && [ -n "$(mirror)" ] || { echo "a mirror of Debian's packages"; return; }
  command -v dockerd >/dev/null && command -v debootstrap >/dev/null && command -v iptables >/dev/null && return
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends docker.io debootstrap iptables; } \
    >"$ENGINE/apt.log" 2>&1 || echo 'the packages docker.io, debootstrap and iptables'
}

# The firewall and the bridges are as they were when it has ended.
start_private_engine() {
  export DOCKER_HOST=unix://$ENGINE/docker.sock DOCKER_CONFIG=$ENGINE/docker-config
  mkdir -p "$DOCKER_CONFIG/cli-plugins"
  # Empty tables first: iptables-save leaves out those that have never had a rule.
  { printf '*filter\n:INPUT ACCEPT\n:FORWARD ACCEPT\n:OUTPUT ACCEPT\nCOMMIT\n*nat\n:PREROUTING ACCEPT\n:INPUT ACCEPT\n:OUTPUT ACCEPT\n:POSTROUTING ACCEPT\nCOMMIT\n'
    iptables-save; } >"$ENGINE/iptables"
  cat /proc/sys/net/ipv4/ip_forward >"$ENGINE/ip_forward"
  ip -o link show type bridge >"$ENGINE/bridges"
  dockerd --data-root "$ENGINE/data" --exec-root "$ENGINE/exec" -H "$DOCKER_HOST" --pidfile "$ENGINE/dockerd.pid" \
    >>"$ENGINE/dockerd.log" 2>&1 </dev/null &
  for _ in $(seq 120); do docker version >/dev/null 2>&1 && break; sleep 0.5; done
  docker version >/dev/null || { tail -5 "$ENGINE/dockerd.log"; return 1; }
  # Docker Compose 2 is in Debian 13 alone.
  if [ ! -x "$ENGINE/debian13/root/usr/libexec/docker/cli-plugins/docker-compose" ]; then
    unpack_debian13 "$ENGINE/debian13" docker-compose >"$ENGINE/compose.log" 2>&1 || { tail -5 "$ENGINE/compose.log"; return 1; }
  fi
  ln -sf "$ENGINE/debian13/root/usr/libexec/docker/cli-plugins/docker-compose" "$DOCKER_CONFIG/cli-plugins/docker-compose"
  docker compose version >/dev/null
}

end_private_engine() {
  [ -f "$ENGINE/dockerd.pid" ] || return 0
  local pid
  pid=$(cat "$ENGINE/dockerd.pid")
  kill "$pid" && tail --pid="$pid" -f /dev/null
  ip -o link show type bridge | cut -d: -f2 | while read -r bridge; do
    grep -q ": $bridge:" "$ENGINE/bridges" || ip link delete "$bridge"
  done
  iptables-restore <"$ENGINE/iptables"
  cat "$ENGINE/ip_forward" >/proc/sys/net/ipv4/ip_forward
}
