#!/usr/bin/env bash
# Runs the production set-up as README.md and docs/operations.md say, in a copy of this checkout, and says of each claim whether it holds.
# It needs a container engine with the base images, or else root on Debian (engine.sh). Ends with 0 and says why where it can have neither.
#
#   npm run test:containers
#   METERLINE_CONTAINERS_DIR=/var/tmp/containers npm run test:containers     keeps a private engine's images for the next run
set -uo pipefail
cd "$(dirname "$0")/../.."
ROOT=$PWD
ENGINE=${METERLINE_CONTAINERS_DIR:-$(mktemp -d "${TMPDIR:-/tmp}/meterline-containers-XXXXXX")}
mkdir -p "$ENGINE"
WORK=$(mktemp -d "$ENGINE/run-XXXXXX")
. test/containers/engine.sh
. test/containers/images.sh
. test/containers/checks.sh

end() {
  trap - EXIT INT TERM
  [ -z "${sender:-}" ] || kill "$sender" 2>/dev/null
  if [ -f "$WORK/clone/.env" ]; then
    (cd "$WORK/clone" && docker compose --profile tools down --volumes --remove-orphans --timeout 5; cluster down --volumes --timeout 5) >/dev/null 2>&1
  fi
  end_private_engine
  rm -rf "$WORK"
  [ -n "${METERLINE_CONTAINERS_DIR:-}" ] || rm -rf "$ENGINE"
}
trap end EXIT
trap 'exit 130' INT TERM

if can_use_engine; then
  echo "engine: the one that runs here, $(docker version --format '{{.Server.Version}}'), with real base images"
else
  missing=$(missing_for_private_engine)
  [ -z "$missing" ] || { echo "SKIPPED: no container engine with the base images runs here, and a private one needs $missing"; exit 0; }
  start_private_engine || { echo "SKIPPED: a private container engine does not start here"; exit 0; }
  echo "engine: a private one, $(docker version --format '{{.Server.Version}}'); stand-ins for the base images (test/containers/images)"
  build_base_images >"$ENGINE/images.log" 2>&1 || { tail -20 "$ENGINE/images.log"; exit 1; }
fi

mkdir "$WORK/clone"
git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'for f; do [ -e "$f" ] && printf "%s\0" "$f"; done' sh | tar --null -T - -c | tar -x -C "$WORK/clone"
cd "$WORK/clone"
export COMPOSE_PROJECT_NAME=meterline-test API_PORT COLLECTOR_PORT CLICKHOUSE_FILES CLICKHOUSE_MEMORY=2g
API_PORT=$(free_port) COLLECTOR_PORT=$(free_port) CLICKHOUSE_FILES=$(ulimit -Hn)
[ "$CLICKHOUSE_FILES" != unlimited ] || CLICKHOUSE_FILES=262144
API=http://127.0.0.1:$API_PORT COLLECTOR=http://127.0.0.1:$COLLECTOR_PORT

step 'Secrets'
check 'without them compose says what to do' says 'run docker/secrets.sh' docker compose config --quiet
check 'the script makes them' docker/secrets.sh
check 'only their owner can read them' [ "$(stat -c %a .env)" = 600 ]
cp .env "$WORK/env"
check 'the script leaves a file that is there' fails docker/secrets.sh
check 'the file is as it was' cmp .env "$WORK/env"
for name in $(cut -d= -f1 .env | grep -v CLUSTER); do
  sed -i "s/^$name=.*/$name=/" .env
  check "an empty $name is named" says "$name" docker compose config --quiet
  cp "$WORK/env" .env
done

step 'README: from nothing to a response'
rm .env
readme_block '### Containers' >"$WORK/readme.sh"
check "its block runs: $(grep -c . "$WORK/readme.sh") lines" logs bash -e "$WORK/readme.sh"
KEY=$(grep -o 'mlk_[A-Za-z0-9_]*' "$WORK/log" | tail -1)
check 'the last line gave a key' [ -n "$KEY" ]
SENDER=$(new_key acme emitter)
check 'an event is answered with 202' post first
check 'the response has it' until_true usage_is 1
check 'the page is there' says '<div id=' curl -s "$API/"
check 'the reference of the API is there' says 'openapi' curl -sL "$API/docs"
check 'the API is ready' says '"status":"ready"' curl -s "$API/readyz"
check 'the collector is ready' says '"status":"ready"' curl -s "$COLLECTOR/readyz"
check 'ports are open on this machine alone' says "127.0.0.1:$API_PORT" docker compose port query 8080
check 'the secrets are in no image' fails docker run --rm --entrypoint ls "$COMPOSE_PROJECT_NAME-query" /app/.env
check 'npm is in no image' fails docker run --rm --entrypoint sh "$COMPOSE_PROJECT_NAME-query" -c 'command -v npm'
check 'neither development dependencies nor the embedded engine are in an image' fails docker run --rm --entrypoint sh "$COMPOSE_PROJECT_NAME-query" -c 'ls -d node_modules/typescript || ls -d node_modules/chdb'

step 'What a process may do'
for service in clickhouse redis ingest query collector alerts; do
  check "$service runs without root, capabilities and new privileges" is_confined "$service"
  check "$service can write neither to its image nor to the programs in it" fails docker compose exec -T "$service" sh -c 'touch /usr/bin/x || touch /x'
  check "$service has limits of memory and logs" is_limited "$service"
done
check 'the collector has no way to ClickHouse' fails docker compose exec -T collector sh -c 'env | grep CLICKHOUSE'
check 'the user default of ClickHouse comes in from its own container alone' says 'Authentication failed' \
  docker compose exec -T query node -e "fetch('http://clickhouse:8123/?query=SELECT+1').then((r) => r.text()).then(console.log)"
check 'the user query of ClickHouse has the rights of clickhouse/users.xml alone' fails as_query 'SELECT count() FROM meterline.settled_rejections'
check 'the user default of Redis may do nothing' says NOAUTH docker compose exec -T redis redis-cli keys '*'
check 'the operator of Redis has a user' says aof_enabled redis info persistence

step 'Wrong secrets'
check 'a wrong password of ClickHouse is told' says 'query: Authentication failed' try_service query -e CLICKHOUSE_PASSWORD=wrong
check 'a wrong password of Redis is told' says 'WRONGPASS' try_service query -e REDIS_URL=redis://query:wrong@redis:6379
check 'a short CURSOR_SECRET is told' says 'CURSOR_SECRET must have at least 32 characters' try_service query -e CURSOR_SECRET=short
check 'a password with other characters is told' says 'REDIS_QUERY_PASSWORD must be a password of letters' try_service redis -e REDIS_QUERY_PASSWORD=a/b

step 'Redis is started again'
docker compose stop ingest >/dev/null 2>&1
for id in r1 r2 r3; do check "event $id is answered with 202 while no worker runs" post $id; done
before=$(lasting_keys)
logs docker compose restart redis
check 'all keys are there' until_true same "$before" lasting_keys
check 'the jobs wait' [ "$(redis llen bull:usage-events:wait)" = 3 ]
check 'a command starts nothing that is stopped' says 'waiting *3' cli queue status
check 'the worker is still stopped' [ -z "$(docker compose ps -q --status running ingest)" ]
logs docker compose up --wait ingest
check 'the jobs are done, and the API key is good' until_true usage_is 4

step 'Each process is killed while events are sent'
send_until_stopped &
sender=$!
for service in redis clickhouse ingest query collector alerts; do
  kill_process "$service"
  check "$service comes back by itself" until_true is_healthy "$service"
done
touch "$WORK/stop"
wait $sender
sender=
total=$((4 + $(cat "$WORK/sent")))
check "each of the $(cat "$WORK/sent") events counts once" until_true usage_is $total
check 'an audit finds nothing' says 'agrees with its events' cli audit

step 'Backup and restore, as docs/operations.md says'
check 'ClickHouse: a full backup' says BACKUP_CREATED ch "BACKUP DATABASE meterline TO Disk('backups', '2026-11-21/')"
check 'ClickHouse: what is new since' says BACKUP_CREATED ch "BACKUP DATABASE meterline TO Disk('backups', '2026-11-22/') SETTINGS base_backup = Disk('backups', '2026-11-21/')"
check 'Redis: its file, while no rewrite runs' backup_redis
keys=$(lasting_keys)
logs docker compose stop ingest query collector alerts
check 'ClickHouse: the copy is restored beside' says RESTORED ch "RESTORE DATABASE meterline AS restored FROM Disk('backups', '2026-11-22/')"
check 'ClickHouse: it has all events' same $total ch 'SELECT count() FROM restored.usage_events FINAL'
logs ch 'DROP DATABASE restored SYNC'
logs ch 'RENAME DATABASE meterline TO meterline_damaged'
check 'ClickHouse: the copy replaces the database' says RESTORED ch "RESTORE DATABASE meterline FROM Disk('backups', '2026-11-22/')"
check 'Redis: the copy replaces its data' restore_redis
logs docker compose up --wait
check 'the schema is up to date' says 'up to date' docker compose run --rm -T migrate
# The maintainer's own keys come and go between its turns.
check 'Redis has its keys' until_true same "$keys" lasting_keys
check 'the response is as before' until_true usage_is $total
check 'an audit finds nothing' says 'agrees with its events' cli audit --repair

step 'Down and up'
logs docker compose down
logs docker compose up --wait
check 'the data is there' until_true usage_is $total

step 'An upgrade, as docs/operations.md says'
sed -i 's|<query>GRANT SELECT ON meterline.price_books</query>|&<query>GRANT SELECT ON meterline.settled_rejections</query>|' clickhouse/users.xml
sed -i '/^user operator /s/ ~bull/ ~upgraded:* ~bull/' redis/users.conf
echo "console.error('the new release');" >>packages/cli/bin/meterline.js
operations_block '### With the containers' >"$WORK/upgrade.sh"
check "its block runs: $(grep -c . "$WORK/upgrade.sh") lines" logs bash -e "$WORK/upgrade.sh"
check 'ClickHouse has the new rights' as_query 'SELECT count() FROM meterline.settled_rejections'
check 'Redis has the new rights' says upgraded redis acl getuser operator
check 'the command line is the new one' says 'the new release' docker compose run --rm cli --help
check 'the response is as before' until_true usage_is $total

step 'Two workers and two query processes'
COLLECTOR_PORT=$COLLECTOR_PORT API_PORT=$API_PORT-$((API_PORT + 20)) logs docker compose up --wait --scale ingest=2 --scale query=2
check 'two workers are connected' until_true says 'workers *2' cli queue status
for index in 1 2; do
  port=$(docker compose port --index $index query 8080 | cut -d: -f2)
  check "query process $index answers" says '"status":"ready"' curl -s "http://127.0.0.1:$port/readyz"
done

step 'Stops'
for service in alerts collector query ingest redis clickhouse; do check "$service ends in time, with 0" stops_in_time "$service"; done
docker compose --profile tools down --volumes --timeout 20 >/dev/null 2>&1

step 'docker-compose.cluster.yml, with two shards of one host'
check 'it starts, with data of its own' logs cluster up --build --wait
for account in a b c d e f; do
  ACCOUNT=$account KEY=$(COMPOSE=cluster new_key $account admin) SENDER=$(COMPOSE=cluster new_key $account emitter)
  check "account $account: an event is answered with 202" post one
  check "account $account: the response has it" until_true usage_is 1
done
for host in clickhouse clickhouse-2-1; do
  check "$host has some of the accounts" says '^[1-5]$' cluster exec -T $host clickhouse-client -q 'SELECT uniqExact(account_id) FROM meterline_local.usage_events'
done
cluster down --volumes --timeout 20 >/dev/null 2>&1

step 'Redis 8.0 and Valkey 8.1'
if servers=$("$ROOT/test/containers/redis-servers.sh" "$ENGINE/servers" 2>"$ENGINE/servers.log"); then
  check 'keep everything with the users of redis/users.conf (test/e2e/redis.long.test.ts)' \
    env -C "$ROOT" METERLINE_TEST_REDIS_SERVERS="$servers" npm run --silent jest -- test/e2e/redis.long.test.ts
else
  echo '  - not tried: Debian 13 cannot be reached'
fi

step 'Kubernetes'
# Of Debian 13: that of Debian 12 knows no components.
if (unpack_debian13 "$ENGINE/kubectl" kubernetes-client) >"$ENGINE/kubectl.log" 2>&1; then
  check 'kubectl starts' "$ENGINE/kubectl/root/usr/bin/kubectl" version --client
  check 'kustomize renders the manifests (test/kubernetes/kustomize.it.test.ts)' \
    env -C "$ROOT" PATH="$ENGINE/kubectl/root/usr/bin:$PATH" npm run --silent jest -- test/kubernetes/kustomize
else
  echo '  - not tried: Debian 13 cannot be reached'
fi

finish
