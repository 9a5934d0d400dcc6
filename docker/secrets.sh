#!/bin/sh
# Makes the passwords that docker-compose.yml asks for, each of random letters and digits, and writes them to .env beside it, which only
# its owner can read. A file that is there already stays as it is: servers and data have its passwords.
set -eu
file=$(dirname "$0")/../.env
if [ -e "$file" ]; then
  echo "docker/secrets.sh: .env is there already and stays as it is" >&2
  exit 1
fi
random() {
  od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'
}
umask 077
{
  for name in CLICKHOUSE_INGEST CLICKHOUSE_QUERY CLICKHOUSE_OPERATOR CLICKHOUSE_MIGRATE \
    REDIS_PRODUCER REDIS_COLLECTOR REDIS_WORKER REDIS_QUERY REDIS_ALERTS REDIS_OPERATOR REDIS_ADMIN; do
    echo "${name}_PASSWORD=$(random 16)"
  done
  echo "CURSOR_SECRET=$(random 32)"
  echo "CLICKHOUSE_CLUSTER_SECRET=$(random 16)"
} >"$file.new"
mv "$file.new" "$file"
echo "docker/secrets.sh: wrote .env; keep a copy of it where secrets are kept"
