#!/usr/bin/env bash
# Steers a hotset server by its HTTP API, with curl and jq: the same steps as the PowerShell module
# in scripts/Hotset, under the same names. "hotset-api.sh COMMAND --help" names a command's options.
#
#   connect                whether the server answers and takes the token
#   get-job [ID]           all jobs, or one with its result
#   wait-job ID            waits for it, says its progress, prints its result; --timeout SECONDS
#   stop-job ID            cancels it
#   remove-job ID          forgets one that has ended
#   get-run [RUN]          the archive, or what a run measured
#   export-report RUN      the report of a run, to standard output; --format html|md|json
#   get-metric             the counters as OpenMetrics text
#
# Jobs are waited for; --as-job prints the job and does not wait. start-warmup never waits.
#
# Generated from the table of operations (make docs): usage
#   get-audit
#   clear-database-cache DSN
#   measure-database DSN
#   set-database-memory | set-sql-memory DSN
#   move-database-file | move-tempdb DSN
#   get-database DSN
#   update-database-statistic DSN
#   invoke-demo
#   measure-array-test
#   measure-disk-speed [TARGET]
#   measure-disk
#   measure-disk-model
#   disable-disk-member SOCKET
#   get-disk-model
#   stop-disk SOCKET
#   measure-disk-raffle [FOLDER]
#   repair-disk-member SOCKET
#   measure-disk-reread
#   get-disk-array SOCKET
#   test-host
#   show-experiment FILE
#   invoke-experiment FILE
#   get-heat-map [DISK]
#   start-heat [DISK]
#   stop-heat [DISK]
#   get-heat [DISK]
#   stop-lab
#   new-lab-image
#   get-lab
#   start-lab
#   get-program
#   remove-program [NAMES]
#   get-history [DISK]
#   get-hit-ratio [DISK]
#   compare-run RUN...
#   remove-run RUN
#   get-run-result RUN
#   measure-trend [RUN]
#   invoke-sql SCRIPT
#   enable-tier [DISK]
#   new-tier DISK
#   disable-tier DISK
#   remove-card CARD
#   remove-tier DISK
#   get-explanation NAME
#   sync-tier [DISK]
#   get-health [DISK]
#   import-card FLASH
#   repair-tier DISK
#   get-cached-range [DISK]
#   resize-tier [DISK]
#   find-card
#   set-tier [DISK]
#   get-tier | get-disk [DISK]
#   new-tpcc-database DSN
#   test-tpcc-database DSN
#   remove-tpcc-database DSN
#   invoke-tpcc DSN
#   new-tpch-database DSN
#   test-tpch-database DSN
#   remove-tpch-database DSN
#   invoke-tpch DSN
#   add-exclusion TARGET...
#   get-pin [DISK]
#   add-pin TARGET...
#   get-warmup-plan TARGET...
#   get-warmup
#   update-pin
#   restore-snapshot FILE
#   start-warmup [TARGET...]
#   register-warmup-schedule [TARGET...]
#   get-warmup-schedule
#   unregister-warmup-schedule NAME
#   add-share TARGET
#   new-snapshot [DISK]
#   get-target DSN
#   remove-pin TARGET...
#   get-cache-advice TRACE
#   test-prediction RUN
#   get-flash-need [DISK]
#   get-hit-curve TRACE
#   get-prediction RUN
#   start-trace-recording DEVICE
#   invoke-simulation TRACE
#   import-trace RECORDING
#   get-trace TRACE
#   new-tpcc-trace OUTPUT
#   new-tpch-trace OUTPUT
# End of what is generated
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

options() { # of the command, from the table below
    local calls
    calls=$(sed -n "/^    \(.* | \)\?$command\( | .*\)\?)\$/,/;;/p" "$0" | tr -d '\\\n' | tr -s ' ' |
        grep -oE '(call|finish) [A-Z]+ [^ ]+ ([a-z_]+[#?+%]? )*--') || { usage; return; }
    [[ $calls != *finish* ]] || echo --as-job
    grep -oE ' [a-z_]+[#?+%]?( |$)' <<<"${calls// /  }" | tr -d ' #?+%' | grep -vx password | tr _ - | sort -u |
        sed 's/^/--/'
}

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

LIMIT_S=600 # of one request: some look at a server for minutes

request() { # METHOD PATH, the body on standard input; the answer on standard output
    local answer status code data=(--data-binary @-) direct=()
    [ "$1" = POST ] || data=()
    # http:// is this computer, and a proxy would read the token.
    [[ $URI != http://* ]] || direct=(--noproxy '*')
    # The token is on no command line: curl reads it from a pipe.
    answer=$(curl --globoff --silent --show-error --connect-timeout 15 --max-time "$LIMIT_S" --request "$1" --write-out '\n%{http_code}' \
        --header 'Content-Type: application/json' "${data[@]}" "${direct[@]}" \
        --config <(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN") \
        --url "${URI%/}/api/v1$2") || give_up 3 "$URI was not reached"
    status=${answer##*$'\n'}
    answer=${answer%$'\n'*}
    [ "$status" -ge 400 ] || { printf '%s' "$answer"; return; }
    code=4
    [ "$status" != 401 ] || code=2
    give_up "$(jq -r --argjson code $code '.exit_code // $code' <<<"$answer" 2>/dev/null || echo $code)" \
        "$(worded <<<"$answer" 2>/dev/null || echo "the server answered $status")"
}

worded() { # a problem on standard input, with what helps as commands of this script
    jq -r --argjson commands "$COMMANDS" '
        def option: " --" + gsub("_"; "-");
        def given: [to_entries[] | if .key == "job" then "" else (.key | option) end + if .value == true then "" else " \(.value)" end] | add // "";
        def helps: "to \(.purpose):" + if .operation then " \($commands[.operation] // .operation)" else " add" end
            + (.parameters | given);
        if .message then
            (if (.field // "") == "" or (.field | IN("job", "run", "targets")) then "" else (.field | option)[1:] + ": " end)
            + ([.message, ((.remedies // [])[] | helps)] | join("; "))
        else .detail // .title end'
}

# Generated from the table of operations (make docs): names
COMMANDS='{
    "jobs cancel": "stop-job",
    "jobs list": "get-job",
    "jobs show": "get-job",
    "audit": "get-audit",
    "database clear-cache": "clear-database-cache",
    "database counters": "measure-database",
    "database memory": "set-database-memory",
    "database place": "move-database-file",
    "database show": "get-database",
    "database statistics": "update-database-statistic",
    "demo": "invoke-demo",
    "disk arrays": "measure-array-test",
    "disk bench": "measure-disk-speed",
    "disk calibrate": "measure-disk",
    "disk calibrate-all": "measure-disk-model",
    "disk fail": "disable-disk-member",
    "disk models": "get-disk-model",
    "disk power-cut": "stop-disk",
    "disk raffle": "measure-disk-raffle",
    "disk replace": "repair-disk-member",
    "disk reread": "measure-disk-reread",
    "disk status": "get-disk-array",
    "doctor": "test-host",
    "experiment plan": "show-experiment",
    "experiment run": "invoke-experiment",
    "heat map": "get-heat-map",
    "heat start": "start-heat",
    "heat stop": "stop-heat",
    "heat top": "get-heat",
    "lab down": "stop-lab",
    "lab image": "new-lab-image",
    "lab status": "get-lab",
    "lab up": "start-lab",
    "programs list": "get-program",
    "programs rm": "remove-program",
    "report history": "get-history",
    "report hit-ratio": "get-hit-ratio",
    "report metrics": "get-metric",
    "report run": "export-report",
    "runs compare": "compare-run",
    "runs list": "get-run",
    "runs rm": "remove-run",
    "runs show": "get-run-result",
    "runs trend": "measure-trend",
    "sql run": "invoke-sql",
    "tier activate": "enable-tier",
    "tier create": "new-tier",
    "tier deactivate": "disable-tier",
    "tier destroy": "remove-card",
    "tier detach": "remove-tier",
    "tier explain": "get-explanation",
    "tier flush": "sync-tier",
    "tier health": "get-health",
    "tier import": "import-card",
    "tier repair": "repair-tier",
    "tier resident": "get-cached-range",
    "tier resize": "resize-tier",
    "tier scan": "find-card",
    "tier set": "set-tier",
    "tier status": "get-tier",
    "tpcc build": "new-tpcc-database",
    "tpcc check": "test-tpcc-database",
    "tpcc drop": "remove-tpcc-database",
    "tpcc run": "invoke-tpcc",
    "tpch build": "new-tpch-database",
    "tpch check": "test-tpch-database",
    "tpch drop": "remove-tpch-database",
    "tpch run": "invoke-tpch",
    "warmup exclude": "add-exclusion",
    "warmup list": "get-pin",
    "warmup pin": "add-pin",
    "warmup plan": "get-warmup-plan",
    "warmup plans": "get-warmup",
    "warmup refresh": "update-pin",
    "warmup restore": "restore-snapshot",
    "warmup run": "start-warmup",
    "warmup schedule add": "register-warmup-schedule",
    "warmup schedule list": "get-warmup-schedule",
    "warmup schedule remove": "unregister-warmup-schedule",
    "warmup share": "add-share",
    "warmup snapshot": "new-snapshot",
    "warmup targets": "get-target",
    "warmup unpin": "remove-pin",
    "whatif advise": "get-cache-advice",
    "whatif check": "test-prediction",
    "whatif flash": "get-flash-need",
    "whatif mrc": "get-hit-curve",
    "whatif predict": "get-prediction",
    "whatif record": "start-trace-recording",
    "whatif simulate": "invoke-simulation",
    "whatif trace convert": "import-trace",
    "whatif trace show": "get-trace",
    "whatif trace tpcc": "new-tpcc-trace",
    "whatif trace tpch": "new-tpch-trace"
}'
# End of what is generated

# Options become fields

collect() { # FIELDS -- ARGUMENTS: the fields as JSON. text, number#, flag?, list+, numbers%; the first may stand alone
    local fields=() known name value first body='{}'
    while [ "$1" != -- ]; do fields+=("$1"); shift; done
    shift
    first=${fields[0]:-}; first=${first%[#?+%]}
    while [ $# -gt 0 ]; do
        case $1 in
            --*) name=${1#--}; name=${name//-/_}; shift ;;
            *) name=$first ;;
        esac
        value=true
        if [[ $name == no_* && " ${fields[*]} " != *" $name? "* ]]; then name=${name#no_}; value=false; fi
        for known in "${fields[@]}" ''; do [ "${known%[#?+%]}" != "$name" ] || break; done
        [ -n "$known" ] || give_up 2 "--${name//_/-}: no such option here; there are: ${fields[*]%[#?+%]}"
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
    # The address tells the product.
    if [[ " ${fields[*]} " == *' engine '* ]]; then
        body=$(jq -c 'if .engine then . elif (.dsn // "") | startswith("sqlserver://") then .engine = "sqlserver"
                      elif (.dsn // "") | test("^postgres(ql)?://") then .engine = "postgres" else . end' <<<"$body")
    fi
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
        *%) jq -c --arg name "${1%?}" --arg value "$2" '.[$name] += [$value | tonumber]' 2>/dev/null ;;
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
        give_up "$(jq -r '.code // 4' <<<"$job")" "job $1 ($(jq -r .verb <<<"$job")) $(how "$state"): $(cause <<<"$job")"
}

cause() { # of a job on standard input
    local job problem
    job=$(cat)
    problem=$(jq -c '.problem // empty' <<<"$job")
    if [ -n "$problem" ]; then worded <<<"$problem"; else jq -r .cause <<<"$job"; fi
}

how() { # STATE: as it is said
    case $1 in interrupted | lost) printf 'was %s' "$1" ;; *) printf '%s' "$1" ;; esac
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
if [ "${1:-}" = --help ]; then options; exit; fi
need
case $command in
    connect)
        LIMIT_S=15
        call GET /jobs -- "$@" | jq --arg uri "$URI" '{uri: $uri, jobs: (.jobs | length)}'
        ;;
    get-job)
        if [ -n "${1:-}" ] && [ "$1" = "${1#--}" ]; then call GET '/jobs/{id}' id -- "$@" | jq .; else call GET /jobs limit# -- "$@" | jq .jobs; fi
        ;;
    wait-job)
        [ $# = 1 ] || { [ $# = 3 ] && [ "$2" = --timeout ] && [[ $3 =~ ^[0-9]+$ ]]; } ||
            give_up 2 "usage: hotset-api.sh wait-job ID [--timeout SECONDS]"
        wait_for "$1" "${3:-}"
        ;;
    stop-job)
        call POST '/jobs/{id}/cancel' id -- "$@" | jq .
        ;;
    remove-job)
        call DELETE '/jobs/{id}' id -- "$@"
        ;;
    get-run)
        if [ -n "${1:-}" ] && [ "$1" = "${1#--}" ]; then call GET '/runs/{run}' run -- "$@" | jq .; else call GET /runs limit# -- "$@" | jq .runs; fi
        ;;
    export-report)
        call GET '/runs/{run}/report' run format -- "$@"
        ;;
    get-metric)
        call GET /../../metrics machine -- "$@"
        ;;
# Generated from the table of operations (make docs): commands
    get-audit)
        call POST '/audit' limit# unknown? -- "$@" | jq .
        ;;
    clear-database-cache)
        finish POST '/database/clear-cache' dsn engine password yes? dry_run? -- "$@"
        ;;
    measure-database)
        call POST '/database/counters' dsn engine password interval# -- "$@" | jq .
        ;;
    set-database-memory | set-sql-memory)
        finish POST '/database/memory' dsn engine password size yes? dry_run? -- "$@"
        ;;
    move-database-file | move-tempdb)
        finish POST '/database/place' dsn engine password folder log? log_size yes? dry_run? -- \
            "$@"
        ;;
    get-database)
        call POST '/database/show' dsn engine password -- "$@" | jq .
        ;;
    update-database-statistic)
        finish POST '/database/statistics' dsn engine password yes? dry_run? -- "$@"
        ;;
    invoke-demo)
        finish POST '/demo' set+ resume threshold+ -- "$@"
        ;;
    measure-array-test)
        finish POST '/disk/arrays' size seconds# repeats# search? posts# memory search_seconds# \
            -- "$@"
        ;;
    measure-disk-speed)
        finish POST '/disk/bench' target model size repeats# seconds# read_only? yes? against \
            threshold+ label keep? -- "$@"
        ;;
    measure-disk)
        finish POST '/disk/calibrate' model size machine -- "$@"
        ;;
    measure-disk-model)
        finish POST '/disk/calibrate-all' only+ size seconds# again? -- "$@"
        ;;
    disable-disk-member)
        finish POST '/disk/fail' socket member# -- "$@"
        ;;
    get-disk-model)
        call POST '/disk/models' -- "$@" | jq .
        ;;
    stop-disk)
        finish POST '/disk/power-cut' socket -- "$@"
        ;;
    measure-disk-raffle)
        finish POST '/disk/raffle' folder model size passes# warm? seed# keep? -- "$@"
        ;;
    repair-disk-member)
        finish POST '/disk/replace' socket member# -- "$@"
        ;;
    measure-disk-reread)
        finish POST '/disk/reread' model+ size passes# seed# -- "$@"
        ;;
    get-disk-array)
        call POST '/disk/status' socket -- "$@" | jq .
        ;;
    test-host)
        call POST '/doctor' machine -- "$@" | jq .
        ;;
    show-experiment)
        finish POST '/experiment/plan' file set+ -- "$@"
        ;;
    invoke-experiment)
        finish POST '/experiment/run' file set+ resume yes? threshold+ -- "$@"
        ;;
    get-heat-map)
        call POST '/heat/map' disk machine cells# no_resident? -- "$@" | jq .
        ;;
    start-heat)
        finish POST '/heat/start' disk machine half_life -- "$@"
        ;;
    stop-heat)
        finish POST '/heat/stop' disk machine -- "$@"
        ;;
    get-heat)
        call POST '/heat/top' disk machine by count# engine dsn password no_resident? -- "$@" | jq .
        ;;
    stop-lab)
        finish POST '/lab/down' yes? -- "$@"
        ;;
    new-lab-image)
        finish POST '/lab/image' -- "$@"
        ;;
    get-lab)
        call POST '/lab/status' -- "$@" | jq .
        ;;
    start-lab)
        finish POST '/lab/up' model machine warehouses# -- "$@"
        ;;
    get-program)
        call POST '/programs/list' machine -- "$@" | jq .
        ;;
    remove-program)
        finish POST '/programs/rm' names+ unused? machine -- "$@"
        ;;
    get-history)
        call POST '/report/history' disk machine since step -- "$@" | jq .
        ;;
    get-hit-ratio)
        call POST '/report/hit-ratio' disk machine by since mark? engine dsn password -- "$@" | jq .
        ;;
    compare-run)
        call GET '/runs/compare' run+ force? -- "$@" | jq .
        ;;
    remove-run)
        call DELETE '/runs/{run}' run -- "$@" | jq .
        ;;
    get-run-result)
        call GET '/runs/{run}' run -- "$@" | jq .
        ;;
    measure-trend)
        call GET '/runs/{run}/trend' run metric -- "$@" | jq .
        ;;
    invoke-sql)
        finish POST '/sql/run' script+ dsn password users rampup# duration# engine define+ \
            protocol seed# rate find_rate+ until_steady fresh? max_errors# threshold+ sample \
            label keep? -- "$@"
        ;;
    enable-tier)
        finish POST '/tier/activate' disk unit? yes? keep_flash? break_reservation? machine \
            dry_run? -- "$@"
        ;;
    new-tier)
        finish POST '/tier/create' disk flash origin cache database database_size kind volume \
            mode block policy reserve? break_reservation? machine yes? dry_run? -- "$@"
        ;;
    disable-tier)
        finish POST '/tier/deactivate' disk machine -- "$@"
        ;;
    remove-card)
        finish POST '/tier/destroy' card machine yes? -- "$@"
        ;;
    remove-tier)
        finish POST '/tier/detach' disk machine flash_is_dead? yes? -- "$@"
        ;;
    get-explanation)
        call POST '/tier/explain' name disk machine engine dsn password -- "$@" | jq .
        ;;
    sync-tier)
        finish POST '/tier/flush' disk machine -- "$@"
        ;;
    get-health)
        call POST '/tier/health' disk machine engine dsn password -- "$@" | jq .
        ;;
    import-card)
        finish POST '/tier/import' flash take_over? machine -- "$@"
        ;;
    repair-tier)
        finish POST '/tier/repair' disk machine yes? -- "$@"
        ;;
    get-cached-range)
        call POST '/tier/resident' disk machine limit# -- "$@" | jq .
        ;;
    resize-tier)
        finish POST '/tier/resize' disk cache flush? machine -- "$@"
        ;;
    find-card)
        call POST '/tier/scan' machine -- "$@" | jq .
        ;;
    set-tier)
        finish POST '/tier/set' disk policy mode origin machine -- "$@"
        ;;
    get-tier | get-disk)
        call POST '/tier/status' disk machine -- "$@" | jq .
        ;;
    new-tpcc-database)
        finish POST '/tpcc/build' dsn password warehouses# engine seed# replace? driver yes? -- \
            "$@"
        ;;
    test-tpcc-database)
        finish POST '/tpcc/check' dsn password engine -- "$@"
        ;;
    remove-tpcc-database)
        finish POST '/tpcc/drop' dsn password engine yes? -- "$@"
        ;;
    invoke-tpcc)
        finish POST '/tpcc/run' dsn password users warehouses# rampup# duration# engine seed# \
            items think_time? home_warehouses? rate find_rate+ until_steady fresh? threshold+ \
            sample label keep? check? driver -- "$@"
        ;;
    new-tpch-database)
        finish POST '/tpch/build' dsn password scale# replace? processes# driver engine yes? -- \
            "$@"
        ;;
    test-tpch-database)
        finish POST '/tpch/check' dsn password queries timeout# scale# engine -- "$@"
        ;;
    remove-tpch-database)
        finish POST '/tpch/drop' dsn password engine yes? -- "$@"
        ;;
    invoke-tpch)
        finish POST '/tpch/run' dsn password streams seed# queries timeout# refresh? scale# \
            threshold+ sample label keep? driver engine -- "$@"
        ;;
    add-exclusion)
        finish POST '/warmup/exclude' targets+ disk machine mount_point engine dsn password -- \
            "$@"
        ;;
    get-pin)
        call POST '/warmup/list' disk machine engine dsn password -- "$@" | jq .
        ;;
    add-pin)
        finish POST '/warmup/pin' targets+ disk machine mount_point engine dsn password rate -- \
            "$@"
        ;;
    get-warmup-plan)
        call POST '/warmup/plan' targets+ disk machine pin+ exclude+ mount_point engine dsn \
            password origin_rate -- "$@" | jq .
        ;;
    get-warmup)
        call POST '/warmup/plans' -- "$@" | jq .
        ;;
    update-pin)
        finish POST '/warmup/refresh' disk machine mount_point engine dsn password rate -- "$@"
        ;;
    restore-snapshot)
        finish POST '/warmup/restore' file disk machine method rate samples# share# -- "$@"
        ;;
    start-warmup)
        call POST '/warmup/run' targets+ resume disk machine method pin+ exclude+ mount_point \
            engine dsn password rate samples# share# -- "$@" | jq .
        ;;
    register-warmup-schedule)
        finish POST '/warmup/schedule/add' targets+ at on_boot? on_shutdown? name disk machine \
            method rate engine dsn password_file no_enable? dry_run? -- "$@"
        ;;
    get-warmup-schedule)
        call POST '/warmup/schedule/list' machine -- "$@" | jq .
        ;;
    unregister-warmup-schedule)
        finish POST '/warmup/schedule/remove' name machine -- "$@"
        ;;
    add-share)
        finish POST '/warmup/share' target disk machine mount_point engine dsn password guarantee \
            limit -- "$@"
        ;;
    new-snapshot)
        finish POST '/warmup/snapshot' disk output machine -- "$@"
        ;;
    get-target)
        call POST '/warmup/targets' dsn password engine count# -- "$@" | jq .
        ;;
    remove-pin)
        finish POST '/warmup/unpin' targets+ disk machine mount_point engine dsn password -- "$@"
        ;;
    get-cache-advice)
        finish POST '/whatif/advise' trace users# cores# storage storage_iops run share# policy \
            mode block price# -- "$@"
        ;;
    test-prediction)
        call POST '/whatif/check' run by storage_iops -- "$@" | jq .
        ;;
    get-flash-need)
        call POST '/whatif/flash' disk users# cores# storage storage_iops hit_ratio% machine run \
            -- "$@" | jq .
        ;;
    get-hit-curve)
        finish POST '/whatif/mrc' trace block sample# cache+ -- "$@"
        ;;
    get-prediction)
        call POST '/whatif/predict' run users# cores# storage storage_iops hit_ratio% -- "$@" | jq .
        ;;
    start-trace-recording)
        finish POST '/whatif/record' device output machine minutes# -- "$@"
        ;;
    invoke-simulation)
        finish POST '/whatif/simulate' trace cache+ policy+ block+ mode+ sequential_cutoff \
            workers# -- "$@"
        ;;
    import-trace)
        finish POST '/whatif/trace/convert' recording output recorder of_disk id_size -- "$@"
        ;;
    get-trace)
        call POST '/whatif/trace/show' trace -- "$@" | jq .
        ;;
    new-tpcc-trace)
        finish POST '/whatif/trace/tpcc' output warehouses# buffer tpm# seconds# checkpoint# \
            seed# -- "$@"
        ;;
    new-tpch-trace)
        finish POST '/whatif/trace/tpch' output scale# buffer read_rate rounds# -- "$@"
        ;;
# End of what is generated
    *)
        give_up 2 "$command: no such command; hotset-api.sh help names them"
        ;;
esac
