#!/usr/bin/env bash
# A robot in shell: leases items, works, says how it ended. Needs curl, and sed to read three fields.
#
# MILLRACE_URL and MILLRACE_KEY say where and as whom; the queue's name is the first argument, and a
# second one says how many items to do before it stops.
set -euo pipefail

queue=$1
left=${2:--1}

call() { # method, path, body → the status on the last line, after the answer
  curl --silent --show-error --max-time 90 --retry 5 --retry-connrefused \
    --request "$1" "$MILLRACE_URL$2" --data "$3" --write-out '\n%{http_code}' \
    --header "Authorization: Bearer $MILLRACE_KEY" --header 'Content-Type: application/json'
}

field() { # name, JSON → the text of a field that holds no quotes
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" <<<"$2"
}

work() { # your work: the item as JSON → the result as JSON; a failure is one that may pass
  local payload
  payload=$(sed -n 's/.*"payload":"\([^"]*\)".*/\1/p' <<<"$1")
  [ -n "$payload" ] || return 1
  printf '{"length":%d}' "${#payload}"
}

while [ "$left" -ne 0 ]; do
  answer=$(call POST /api/queue-items/next "{\"queue_name\":\"$queue\",\"wait_seconds\":20}")
  status=${answer##*$'\n'}
  item=${answer%$'\n'*}
  case $status in
    204) continue ;;
    200) ;;
    *) echo "$status $item" >&2 && exit 1 ;;
  esac
  id=$(field id "$item")
  token=$(field token "$item")
  if result=$(work "$item"); then
    end="{\"status\":\"DONE\",\"token\":\"$token\",\"result\":$result}"
  else
    end="{\"status\":\"FAILED\",\"token\":\"$token\",\"exception_type\":\"application\",\"error_message\":\"there is nothing to measure\"}"
  fi
  answer=$(call PUT "/api/queue-items/$id" "$end")
  echo "$id ${answer##*$'\n'} $(field status "${answer%$'\n'*}")"
  left=$((left - 1))
done
