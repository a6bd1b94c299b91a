#!/usr/bin/env bash
# Steers a hotset server by its HTTP API, with curl and jq: the same steps as the PowerShell module
# in scripts/Hotset, under the same names.
#
#   hotset-api.sh connect                  whether the server answers and takes the token
#   hotset-api.sh get-disk [DISK]          --machine
#   hotset-api.sh get-hit-ratio [DISK]     --machine --by --since --engine --dsn
#   hotset-api.sh get-warmup-plan TARGET…  --disk --machine --pin --exclude --mount-point --engine
#                                          --dsn --origin-rate
#   hotset-api.sh start-warmup TARGET…     --resume --disk --machine --method --pin --exclude
#                                          --mount-point --engine --dsn --rate --samples --share
#   hotset-api.sh get-job [ID]
#   hotset-api.sh wait-job ID              --timeout SECONDS
#   hotset-api.sh stop-job ID
#   hotset-api.sh invoke-tpcc DSN          --engine --users --warehouses --rampup --duration --seed
#                                          --think-time --home-warehouses --no-check --driver --as-job
#   hotset-api.sh invoke-tpch DSN          --engine --streams --seed --queries --timeout --refresh
#                                          --no-refresh --scale --driver --as-job
#   hotset-api.sh get-run [RUN]
#   hotset-api.sh compare-run RUN RUN…     --force
#   hotset-api.sh set-sql-memory DSN       --engine --size --yes --dry-run
#   hotset-api.sh move-tempdb DSN          --engine --folder --log --log-size --yes --dry-run
#
# Options mean what they mean to hotset's own command line. JSON goes to standard output, progress
# and messages to standard error. Exit codes: 0 ok, 2 usage, 3 something is missing here or the
# server was not reached, 4 failed, 5 threshold missed, 124 still running after --timeout,
# 130 interrupted.
#
# In the environment:
#   HOTSET_URI         where the console listens, such as https://db1:8480; http:// for this
#                      computer alone. A certificate of your own: CURL_CA_BUNDLE names its file.
#   HOTSET_TOKEN_FILE  the file that holds the token (~/.config/hotset/token), or HOTSET_TOKEN
#   HOTSET_PASSWORD    the database user's password, or HOTSET_PASSWORD_FILE
set -euo pipefail
shopt -s inherit_errexit

say() { printf 'hotset-api: %s\n' "$*" >&2; }
give_up() { say "$2"; exit "$1"; }
usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; }

# The server, and who we are

need() {
    local program
    for program in curl jq; do
        command -v "$program" >/dev/null || give_up 3 "$program is missing: apt-get install $program"
    done
    URI=${HOTSET_URI:-}
    [ -n "$URI" ] || give_up 2 "set HOTSET_URI: where the console listens, such as https://db1:8480"
    [[ $URI =~ ^(https://[^\"\\]+|http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?/?)$ ]] ||
        give_up 2 "HOTSET_URI=$URI: write https://…, or http:// and this computer: the token would cross the network in plain"
    TOKEN=$(secret HOTSET_TOKEN "${XDG_CONFIG_HOME:-$HOME/.config}/hotset/token")
    [[ $TOKEN =~ ^[A-Za-z0-9._~+/=-]+$ ]] ||
        give_up 2 "no token: set HOTSET_TOKEN_FILE, or HOTSET_TOKEN ('hotset console token create NAME' on the server makes one)"
    PASSWORD=$(secret HOTSET_PASSWORD /dev/null)
}

secret() { # what a variable holds, or the file that VARIABLE_FILE names
    local file=${1}_FILE
    file=${!file:-$2}
    if [ -n "${!1:-}" ]; then printf '%s' "${!1}"
    elif [ "$file" != "$2" ] || [ -r "$file" ]; then
        [ -r "$file" ] || give_up 2 "${1}_FILE=$file cannot be read"
        printf '%s' "$(<"$file")"
    fi
}

request() { # METHOD PATH, the body on standard input; the answer on standard output
    local answer status code data=(--data-binary @-)
    [ "$1" = POST ] || data=()
    # The token is on no command line: curl reads it from a pipe.
    answer=$(curl --globoff --silent --show-error --max-time 600 --request "$1" --write-out '\n%{http_code}' \
        --header 'Content-Type: application/json' "${data[@]}" \
        --config <(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN") \
        --url "${URI%/}/api/v1$2") || give_up 3 "$URI was not reached"
    status=${answer##*$'\n'}
    answer=${answer%$'\n'*}
    [ "$status" -ge 400 ] || { printf '%s' "$answer"; return; }
    code=4
    [ "$status" != 401 ] || code=2
    give_up "$(jq -r --argjson code $code '.exit_code // $code' <<<"$answer" 2>/dev/null || echo $code)" \
        "$(jq -r '.detail // .title' <<<"$answer" 2>/dev/null || echo "the server answered $status")"
}

# Options become fields

collect() { # FIELDS -- ARGUMENTS: the fields as JSON. text, number#, flag?, list+; the first may stand alone
    local fields=() known name value first
    while [ "$1" != -- ]; do fields+=("$1"); shift; done
    shift
    first=${fields[0]:-}; first=${first%[#?+]}
    local body=${DEFAULTS:-'{}'}
    while [ $# -gt 0 ]; do
        case $1 in
            --*) name=${1#--}; name=${name//-/_}; shift ;;
            *) name=$first ;;
        esac
        value=true
        if [[ $name == no_* ]]; then name=${name#no_}; value=false; fi
        for known in "${fields[@]}" ''; do [ "${known%[#?+]}" != "$name" ] || break; done
        [ -n "$known" ] || give_up 2 "--${name//_/-}: no such option here; there are: ${fields[*]%[#?+]}"
        [ "$known" != password ] || give_up 2 "--password: a command line is no place for it: set HOTSET_PASSWORD_FILE"
        if [[ $known != *\? ]]; then
            [ $# -gt 0 ] || give_up 2 "--${name//_/-} needs a value"
            value=$1
            shift
        fi
        [[ $name != dsn || ! $value =~ ^[a-z]+://[^/@]*:[^/@]*@ ]] ||
            give_up 2 "--dsn holds a password: give it in HOTSET_PASSWORD or HOTSET_PASSWORD_FILE"
        body=$(put "$known" "$value" <<<"$body") || give_up 2 "--${name//_/-} $value: a number is needed"
    done
    # Neither is the password on any.
    if [[ " ${fields[*]} " == *' password '* && -n $PASSWORD ]]; then
        PASSWORD=$PASSWORD jq -c '.password = env.PASSWORD' <<<"$body"
    else
        printf '%s' "$body"
    fi
}

put() { # FIELD VALUE: into the object on standard input
    case $1 in
        *\#) jq -c --arg name "${1%?}" --arg value "$2" '.[$name] = ($value | tonumber)' 2>/dev/null ;;
        *\?) jq -c --arg name "${1%?}" --argjson value "$2" '.[$name] = $value' ;;
        *+) jq -c --arg name "${1%?}" --arg value "$2" '.[$name] += [$value]' ;;
        *) jq -c --arg name "$1" --arg value "$2" '.[$name] = $value' ;;
    esac
}

call() { # METHOD PATH FIELDS -- ARGUMENTS
    local method=$1 path=$2 body id query
    shift 2
    body=$(collect "$@")
    if [[ $path =~ \{([a-z]+)\} ]]; then
        id=$(jq -r --arg name "${BASH_REMATCH[1]}" '.[$name] // "" | @uri' <<<"$body")
        [ -n "$id" ] || give_up 2 "name one: ${BASH_REMATCH[1]^^}"
        path=${path/"${BASH_REMATCH[0]}"/$id}
        body=$(jq -c --arg name "${BASH_REMATCH[1]}" 'del(.[$name])' <<<"$body")
    fi
    if [ "$method" != POST ]; then
        query=$(jq -r '[to_entries[] | .key as $name | .value | if type == "array" then .[] else . end
                        | "\($name)=\(tostring | @uri)"] | join("&")' <<<"$body")
        path+=${query:+?$query}
    fi
    request "$method" "$path" <<<"$body"
}

# Jobs

wait_for() { # ID [SECONDS]: its progress, then its result
    local job state progress said='' deadline=$((SECONDS + ${2:-0}))
    while true; do
        job=$(request GET "/jobs/$1" </dev/null)
        progress=$(jq -r .progress <<<"$job")
        [ "$progress" = "$said" ] || { say "$progress"; said=$progress; }
        state=$(jq -r .state <<<"$job")
        [ "$state" = running ] || break
        [ -z "${2:-}" ] || [ $SECONDS -lt $deadline ] || give_up 124 "job $1 goes on after $2 s"
        sleep 1
    done
    jq '.result // empty' <<<"$job"
    [ "$state" = 'done' ] ||
        give_up "$(jq -r '.code // 4' <<<"$job")" "job $1 ($(jq -r .verb <<<"$job")) is $state: $(jq -r .cause <<<"$job")"
}

finish() { # as call, then waits for the job unless --as-job stands among the arguments
    local job argument as_job='' rest=()
    for argument in "$@"; do
        if [ "$argument" = --as-job ]; then as_job=1; else rest+=("$argument"); fi
    done
    job=$(call "${rest[@]}")
    if [ -n "$as_job" ]; then jq . <<<"$job"; else wait_for "$(jq -r .id <<<"$job")"; fi
}

command=${1:-help}
shift || true
case $command in
    help | -h | --help) usage; exit ;;
esac
[ "${1:-}" != --help ] || { usage; exit; }
need
case $command in
    connect)
        call GET /jobs -- "$@" | jq --arg uri "$URI" '{uri: $uri, jobs: (.jobs | length)}'
        ;;
    get-disk)
        call GET /tier/status disk machine -- "$@" | jq .disks
        ;;
    get-hit-ratio)
        call POST /report/hit-ratio disk machine by since engine dsn password -- "$@" | jq .
        ;;
    get-warmup-plan)
        call POST /warmup/plan targets+ disk machine pin+ exclude+ mount_point engine dsn password \
            origin_rate -- "$@" | jq .
        ;;
    start-warmup)
        call POST /warmup/run targets+ resume disk machine method pin+ exclude+ mount_point engine \
            dsn password rate samples# share# -- "$@" | jq .
        ;;
    get-job)
        if [ $# -gt 0 ]; then call GET '/jobs/{id}' id -- "$@" | jq .; else call GET /jobs -- | jq .jobs; fi
        ;;
    wait-job)
        [ $# = 1 ] || { [ $# = 3 ] && [ "$2" = --timeout ] && [[ $3 =~ ^[0-9]+$ ]]; } ||
            give_up 2 "usage: hotset-api.sh wait-job ID [--timeout SECONDS]"
        wait_for "$1" "${3:-}"
        ;;
    stop-job)
        call POST '/jobs/{id}/cancel' id -- "$@" | jq .
        ;;
    invoke-tpcc)
        finish POST /tpcc/run dsn password engine users# warehouses# rampup# duration# seed# \
            think_time? home_warehouses? check? driver -- "$@"
        ;;
    invoke-tpch)
        finish POST /tpch/run dsn password engine streams seed# queries timeout# refresh? scale# \
            driver -- "$@"
        ;;
    get-run)
        if [ $# -gt 0 ]; then call GET '/runs/{run}' run -- "$@" | jq .; else call GET /runs -- | jq .runs; fi
        ;;
    compare-run)
        call GET /runs/compare run+ force? -- "$@" | jq .
        ;;
    set-sql-memory)
        DEFAULTS='{"engine":"sqlserver"}' finish POST /database/memory dsn password engine size yes? \
            dry_run? -- "$@"
        ;;
    move-tempdb)
        DEFAULTS='{"engine":"sqlserver"}' finish POST /database/place dsn password engine folder log? \
            log_size yes? dry_run? -- "$@"
        ;;
    *)
        give_up 2 "$command: no such command; hotset-api.sh help names them"
        ;;
esac
