# Sourced by run.sh: how it says what holds, and asks the containers.
FAILED=0 CHECKS=0 ACCOUNT=acme
STARTED=$SECONDS

step() {
  printf '\n%s (%s s)\n' "$1" $((SECONDS - STARTED))
}

# check SENTENCE COMMAND...: if the command fails, prints the end of its output, here and again at the end of the run.
check() {
  local sentence=$1
  shift
  CHECKS=$((CHECKS + 1))
  if "$@" >"$WORK/output" 2>&1; then
    echo "  ✓ $sentence"
  else
    FAILED=$((FAILED + 1))
    { echo "  ✗ $sentence"; tail -12 "$WORK/output" | cut -c1-200 | sed 's/^/      /'; } | tee -a "$WORK/failed"
  fi
}

finish() {
  printf '\n%s of %s claims hold, after %s s\n' $((CHECKS - FAILED)) $CHECKS $((SECONDS - STARTED))
  [ $FAILED = 0 ] || { cat "$WORK/failed"; return 1; }
}

fails() {
  ! "$@"
}

# says PATTERN COMMAND...: whatever its exit code is.
says() {
  local pattern=$1
  shift
  local said
  said=$("$@" 2>&1)
  printf '%s\n' "$said"
  grep -q -- "$pattern" <<<"$said"
}

same() {
  local expected=$1
  shift
  [ "$("$@")" = "$expected" ]
}

logs() {
  "$@" >"$WORK/log" 2>&1 || { cat "$WORK/log"; return 1; }
}

# Repeats a command until it succeeds, for at most five minutes, which only a failure takes: a slow machine must not fail a claim.
until_true() {
  local end=$((SECONDS + 300))
  until "$@" >"$WORK/tried" 2>&1; do
    [ $SECONDS -lt $end ] || { cat "$WORK/tried"; return 1; }
    sleep 0.5
  done
}

free_port() {
  node -e "require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port); this.close(); })"
}

# The commands of the first block below a heading.
readme_block() {
  commands_below README.md "$1"
}
operations_block() {
  commands_below docs/operations.md "$1"
}
commands_below() {
  awk -v heading="$2" '$0 == heading { on = 1 } on && /^```$/ { exit } on && inside { print } on && /^```sh$/ { inside = 1 }' "$1"
}

ch() {
  docker compose exec -T clickhouse clickhouse-client -q "$1"
}

# A statement as the query service sends it.
as_query() {
  docker compose exec -T query node -e 'const { CLICKHOUSE_USER: user, CLICKHOUSE_PASSWORD: key } = process.env;
    fetch("http://clickhouse:8123/", { method: "POST", body: process.argv[1], headers: { "X-ClickHouse-User": user, "X-ClickHouse-Key": key } })
      .then(async (r) => { console.log(await r.text()); process.exit(r.ok ? 0 : 1); })' "$1"
}

cli() {
  docker compose run --rm -T cli "$@"
}

redis() {
  docker compose exec -T redis sh -c 'REDISCLI_AUTH=$REDIS_ADMIN_PASSWORD exec redis-cli --user admin "$@"' sh "$@"
}

# The names of the keys that a restart and a backup must keep. Others come and go by themselves: windows of rates, what BullMQ keeps while a
# job runs, and the queues of the schedulers.
lasting_keys() {
  redis --scan | grep -vE ':(rate|stored-groups):|^bull:usage-events:(marker|stalled|stalled-check|active|.*:lock)$|^bull:meterline-' | sort
}

# With the secrets, and the file that leaves one host to each shard.
cluster() {
  COMPOSE_PROJECT_NAME=meterline-cluster-test docker compose -f docker-compose.yml -f docker-compose.cluster.yml -f "$HERE/two-shards.yml" "$@"
}

# new_key ACCOUNT ROLE
new_key() {
  ${COMPOSE:-docker compose} run --rm -T cli keys create --account "$1" --role "$2" 2>/dev/null | grep -o 'mlk_[A-Za-z0-9_]*'
}

# An event of usage 1 whose id is given; it is answered with 202.
post() {
  says ' 202$' curl -s -m 60 -w ' %{http_code}\n' "$COLLECTOR/v0/events" -H "Authorization: Bearer $SENDER" \
    -H 'Content-Type: application/json' -d "{\"eventId\":\"$1\",\"workspace\":\"production\",\"resourceType\":\"agent\",\"resourceName\":\"support\",
      \"billingDimension\":\"agent_compute_runtime_gbs\",\"usage\":\"1\",\"timestamp\":\"$NOW\"}"
}
NOW=$(date -u -d '1 hour ago' +%FT%TZ)

usage_is() {
  says "\"totalUsage\":$1[},]" curl -s -m 60 -H "Authorization: Bearer $KEY" \
    "$API/v0/accounts/$ACCOUNT/metrics?startTime=$(date -u -d '2 days ago' +%FT%TZ)&endTime=$(date -u -d '1 day' +%FT%TZ)&groupBy=billing_dimension"
}

# Sends each event again and again until it is answered with 202.
send_until_stopped() {
  local n=0
  while [ ! -e "$WORK/stop" ]; do
    n=$((n + 1))
    until post "kill-$n" >/dev/null; do sleep 0.2; done
  done
  echo $n >"$WORK/sent"
}

# docker kill would count as a stop, after which nothing starts it again.
kill_process() {
  local container pid
  container=$(docker compose ps -q "$1")
  pid=$(docker inspect -f '{{.State.Pid}}' "$container")
  docker inspect -f '{{.RestartCount}}' "$container" >"$WORK/restarts"
  kill -9 "$pid" 2>/dev/null || docker run --rm --privileged --pid=host --entrypoint sh redis:7.4-bookworm -c "kill -9 $pid"
}

# Started again since kill_process, and healthy.
is_healthy() {
  [ "$(docker inspect -f '{{.State.Health.Status}}' "$(docker compose ps -q "$1")")" = healthy ] \
    && [ "$(docker inspect -f '{{.RestartCount}}' "$(docker compose ps -q "$1")")" -gt "$(cat "$WORK/restarts")" ]
}

is_confined() {
  docker compose exec -T "$1" cat /proc/1/status | grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs)' | tr -s '\t\n' '  ' | tee "$WORK/rights"
  grep -Eq 'Uid: [1-9][0-9]* .*CapEff: 0+ CapBnd: 0+ NoNewPrivs: 1' "$WORK/rights"
}

is_limited() {
  docker inspect -f '{{.HostConfig.Memory}} {{index .HostConfig.LogConfig.Config "max-size"}}' "$(docker compose ps -q "$1")" | tee "$WORK/limits"
  grep -Eq '^[1-9][0-9]* 10m$' "$WORK/limits"
}

# What a service says that cannot start: its container would start it for ever.
try_service() {
  local service=$1
  shift
  timeout 300 docker compose run --rm --no-deps -T "$@" "$service"
}

# Exit code 0 before Docker would kill it.
stops_in_time() {
  local containers started=$SECONDS
  containers=$(docker compose ps -q "$1")
  docker compose stop "$1"
  echo "$((SECONDS - started)) s"
  for container in $containers; do same 0 docker inspect -f '{{.State.ExitCode}}' "$container" || return 1; done
}

backup_redis() {
  redis config set auto-aof-rewrite-percentage 0 && redis info persistence | grep aof_rewrite_in_progress:0 \
    && { docker compose exec -T redis tar -C /data -cf - appendonlydir >"$WORK/redis-aof.tar" || [ $? = 1 ]; } && redis config set auto-aof-rewrite-percentage 100
}

restore_redis() {
  docker compose stop redis && docker compose run --rm --no-deps -T --entrypoint sh redis -c 'rm -rf /data/* && tar -C /data -xf -' <"$WORK/redis-aof.tar"
}
