#!/bin/sh
# Generates the random passwords that docker-compose.yml needs, and writes them to .env. Only the owner can read the file.
# Never overwrites an existing .env, because servers and data use its passwords.
set -eu
file=$(dirname "$0")/../.env
if [ -e "$file" ]; then
  echo "docker/secrets.sh: .env already exists, and was not changed. To generate new passwords, move it away first." >&2
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
echo "docker/secrets.sh: created .env. Store a copy with your secrets."
