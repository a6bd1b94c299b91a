#!/usr/bin/env bash
# SQL Server in a container, with data on the accelerated disk, and logs and tempdb on the volume.
#
#   scripts/sqlserver.sh up       start it, make a database, move tempdb, size the log, cap the memory
#   scripts/sqlserver.sh status   what it is and where its files lie
#   scripts/sqlserver.sh down     stop and remove the container; data and system databases stay
#
# The variables are those of compose.yaml; besides, MSSQL_SA_PASSWORD_FILE instead of the password,
# HOTSET_DATABASE (tpcc), HOTSET_LOG_SIZE (1GiB) and HOTSET_SQLSERVER_MEMORY (75 % of what it sees).
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'sqlserver: %s\n' "$*" >&2; }
give_up() { say "$2"; exit "$1"; }

DATABASE=${HOTSET_DATABASE:-tpcc}
WAIT_S=${HOTSET_WAIT_S:-180}
[[ $DATABASE =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || give_up 2 "HOTSET_DATABASE=$DATABASE: letters, digits and _ only"

compose() { docker compose "$@" >&2; }
if command -v hotset >/dev/null; then HOTSET=(hotset); else HOTSET=(./hotset); fi
database() { # verb, database, options …
    local verb=$1 name=$2
    shift 2
    HOTSET_PASSWORD=$MSSQL_SA_PASSWORD "${HOTSET[@]}" database "$verb" --engine sqlserver \
        --dsn "sqlserver://sa@127.0.0.1:${MSSQL_PORT:-1433}/$name?encrypt=yes&trust=yes" "$@"
}

need() {
    docker compose version >/dev/null 2>&1 ||
        give_up 3 "docker with its compose plugin is needed: https://docs.docker.com/engine/install/"
    if [ -z "${MSSQL_SA_PASSWORD:-}" ] && [ -n "${MSSQL_SA_PASSWORD_FILE:-}" ]; then
        [ -r "$MSSQL_SA_PASSWORD_FILE" ] || give_up 2 "MSSQL_SA_PASSWORD_FILE=$MSSQL_SA_PASSWORD_FILE cannot be read"
        MSSQL_SA_PASSWORD=$(<"$MSSQL_SA_PASSWORD_FILE")
    fi
    [ -n "${MSSQL_SA_PASSWORD:-}" ] || give_up 2 "set MSSQL_SA_PASSWORD or MSSQL_SA_PASSWORD_FILE: the password of sa"
    export MSSQL_SA_PASSWORD
}

need_folders() {
    [ -n "${ACCEPT_EULA:-}" ] || give_up 2 "set ACCEPT_EULA=Y if you accept the licence of SQL Server"
    local variable
    for variable in HOTSET_DATA HOTSET_VOLUME; do
        [ -n "${!variable:-}" ] || give_up 2 "set $variable: a folder on the $([ $variable = HOTSET_DATA ] && echo accelerated disk || echo flash volume)"
        [ -d "${!variable}" ] || give_up 2 "$variable=${!variable} is no folder"
        # The image's server runs as user 10001.
        [ "$(id -u)" != 0 ] || chown 10001:0 "${!variable}"
    done
}

answers() {
    local deadline=$((SECONDS + WAIT_S)) reason=''
    say "waiting until it answers"
    until reason=$(database show master --format csv 2>&1 >/dev/null); do
        [ $SECONDS -lt $deadline ] || { compose logs --tail 20 sqlserver; give_up 4 "no answer after $WAIT_S s: $reason"; }
        sleep 2
    done
}

up() {
    need
    need_folders
    compose up --detach
    answers
    say "database $DATABASE"
    # The container has the password in its own environment: it is on no command line.
    # shellcheck disable=SC2016
    compose exec -T sqlserver sh -c 'SQLCMDPASSWORD=$MSSQL_SA_PASSWORD exec /opt/mssql-tools18/bin/sqlcmd \
        -C -b -S localhost -U sa -Q "$1"' sh \
        "IF DB_ID('$DATABASE') IS NULL CREATE DATABASE $DATABASE; ALTER DATABASE $DATABASE SET RECOVERY SIMPLE"
    local cap=()
    [ -z "${HOTSET_SQLSERVER_MEMORY:-}" ] || cap=(--size "$HOTSET_SQLSERVER_MEMORY")
    database memory "$DATABASE" --yes "${cap[@]}"
    database place "$DATABASE" --folder /volume --log-size "${HOTSET_LOG_SIZE:-1GiB}" --yes
    say "restarting it: tempdb moves then"
    compose restart sqlserver
    answers
    database show "$DATABASE"
}

case "${1:-}" in
    up) up ;;
    status) need; docker compose ps sqlserver >&2 || true; database show "$DATABASE" ;;
    down)
        # Compose reads the whole file, so that even stopping asks for its variables.
        export MSSQL_SA_PASSWORD=- ACCEPT_EULA=- HOTSET_DATA=${HOTSET_DATA:-/} HOTSET_VOLUME=${HOTSET_VOLUME:-/}
        compose down
        ;;
    *) give_up 2 "usage: scripts/sqlserver.sh up|down|status" ;;
esac
