#!/usr/bin/env bash
# Ends with the exit code of the run; an undecided run is a warning if the workflow says so.
set -euo pipefail

case $TARE_INCONCLUSIVE in
  fail | warn) ;;
  *) echo '::error title=tare::inconclusive: want "fail" or "warn"' && exit 2 ;;
esac
if [ "$TARE_CODE" = 11 ] && [ "$TARE_INCONCLUSIVE" = warn ]; then
  echo '::warning title=tare::inconclusive: more blocks decide it; the report says how many'
  exit 0
fi
exit "$TARE_CODE"
