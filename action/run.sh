#!/usr/bin/env bash
# Runs the experiment and keeps its exit code: the verdict ends the job only after the report was uploaded.
set -euo pipefail

folder=$(mktemp -d "$RUNNER_TEMP/tare-XXXXXX")
flags=()
while IFS= read -r flag; do
  [ -z "$flag" ] || flags+=("$flag")
done <<<"$TARE_FLAGS"

code=0
tare run --results "$folder/results" -o text -o "html=$folder/report.html" -o "markdown=$folder/report.md" \
  -o "junit=$folder/junit.xml" -o "sarif=$folder/tare.sarif" "${flags[@]}" -- "$TARE_FILE" || code=$?
case $code in
  0) verdict=pass ;;
  10) verdict=regressed ;;
  11) verdict=inconclusive ;;
  12 | 13) verdict=invalid ;;
  14) verdict=permits ;;
  *) verdict=error ;;
esac
printf '%s\n' "code=$code" "verdict=$verdict" "folder=$folder" >>"$GITHUB_OUTPUT"
