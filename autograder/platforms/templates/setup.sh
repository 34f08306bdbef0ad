#!/usr/bin/env bash
# Run once, as root, when the autograder is built: Python and the packages that grading needs.
set -euo pipefail
base=$(cd "$(dirname "$0")/.." && pwd)
export DEBIAN_FRONTEND=noninteractive
apt-get update && apt-get install -y --no-install-recommends python3 python3-venv
python=python3
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  python=python3.11  # Ubuntu 22.04 has it beside its own
  apt-get install -y --no-install-recommends python3.11 python3.11-venv || {
    echo "This image has $(python3 --version); 3.11 or newer is needed. Choose Ubuntu 24.04 as base image." >&2
    exit 1
  }
fi
"$python" -m venv "$base/venv"
"$base/venv/bin/python" -m pip install --no-cache-dir --extra-index-url @INDEX@ -r "$base/source/requirements.txt"
