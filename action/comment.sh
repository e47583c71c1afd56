#!/usr/bin/env bash
# Comments the report on the pull request, and on later runs replaces that comment.
set -euo pipefail

mark="<!-- tare $(printf '%s\n' "$GITHUB_WORKFLOW" "$GITHUB_JOB" "$TARE_FILE" | sha256sum | cut -c 1-16) -->"
body=$TARE_FOLDER/comment.md
link=$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/actions/runs/$GITHUB_RUN_ID
{
  printf '%s\n**tare: %s** ([run](%s))\n\n' "$mark" "$TARE_VERDICT" "$link"
  if [ -f "$TARE_FOLDER/report.md" ]; then # a comment holds 65536 characters
    head -c 60000 "$TARE_FOLDER/report.md" | iconv -c -f utf-8 -t utf-8
    [ "$(wc -c <"$TARE_FOLDER/report.md")" -le 60000 ] || printf '\n\n… the rest is on the report page\n'
  else
    echo 'There is no report: the log says why.'
  fi
} >"$body"

all=repos/$GITHUB_REPOSITORY/issues/$PULL_REQUEST/comments
comment() {
  local old
  old=$(gh api --paginate "$all" --jq ".[] | select(.user.type == \"Bot\" and (.body | startswith(\"$mark\"))) | .id") || return
  old=${old%%$'\n'*}
  if [ -n "$old" ]; then
    gh api --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$old" -F "body=@$body" --silent
  else
    gh api --method POST "$all" -F "body=@$body" --silent
  fi
}
comment || echo '::warning title=tare::cannot comment on the pull request: the job needs "pull-requests: write", which forks do not get'
