#!/bin/sh
# Starts Redis in a container, with the users of users.conf and their passwords from the environment. The passwords are written to a file in
# memory, because other users can see the arguments of a process.
set -eu
umask 077
users=/tmp/users.conf
edits=
for user in PRODUCER COLLECTOR WORKER QUERY ALERTS OPERATOR ADMIN; do
  name=REDIS_${user}_PASSWORD
  eval "password=\${$name:-}"
  case $password in
    '' | *[!A-Za-z0-9_-]*)
      echo "$name must be a password of letters, digits, - and _" >&2
      exit 1
      ;;
  esac
  edits="${edits}s/>${user}_PASSWORD />$password /;"
done
# printf is built into the shell, so the passwords are not arguments of a process.
printf '%s' "$edits" | sed -f /dev/stdin /etc/meterline/redis/users.conf >"$users"
# With appendfsync always, accepted jobs survive a power cut. The collector accepts no events with everysec.
exec redis-server "$users" --dir /data --appendonly yes --appendfsync always --maxmemory-policy noeviction --proto-max-bulk-len 32mb --maxmemory "${REDIS_MAXMEMORY:-0}"
