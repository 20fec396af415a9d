"""Writes the package's schema: `python components/schema.py > components/schema.json`."""

import json
import sys

from plimsoll.components import PACKAGED, schema

sys.stdout.write(json.dumps(json.loads(schema(PACKAGED)), indent=2, sort_keys=True) + "\n")
