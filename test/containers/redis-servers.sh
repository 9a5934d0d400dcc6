#!/usr/bin/env bash
# Prints the paths of Redis 8.0 and Valkey 8.1, of Debian 13's archive, separated by a colon. They are unpacked into the folder that
# is given, with the libraries of Debian 13, and nothing is installed. Ends with 1 where that archive cannot be had.
#
#   test/containers/redis-servers.sh /tmp/servers
set -euo pipefail
folder=$1
. "$(dirname "$0")/debian13.sh"
unpack_debian13 "$folder" redis-server valkey-server >&2
# Started by the linker of Debian 13: this machine's C library may be older.
for server in redis valkey; do
  mkdir -p "$folder/$server-8"
  printf '#!/bin/sh\nexec "%s" --library-path "%s" "%s" "$@"\n' "$folder/root/usr/lib64/ld-linux-x86-64.so.2" \
    "$folder/root/usr/lib/x86_64-linux-gnu" "$folder/root/usr/bin/$server-server" >"$folder/$server-8/$server-server"
  chmod +x "$folder/$server-8/$server-server"
  "$folder/$server-8/$server-server" --version >&2
done
echo "$folder/redis-8/redis-server:$folder/valkey-8/valkey-server"
