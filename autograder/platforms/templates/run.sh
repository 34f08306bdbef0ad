#!/usr/bin/env bash
# Run as root for each submission, in an image that has what tests/Dockerfile installs.
set -euo pipefail
umask 077
base=$(cd "$(dirname "$0")/.." && pwd)
chmod -R go-rwx "$base/tests/kit/fixtures"
cd "$base/tests/kit"
exec "${PYTHON:-python3}" -m autograder.platforms.containers prairielearn --base "$base"
