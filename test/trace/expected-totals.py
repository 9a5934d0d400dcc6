"""What replaying the Azure LLM 2023 trace must add up to: an independent calculation, which shares no code with Meterline.

Reads the two files of each directory given and prints, per directory, the usage, cost and number of events of every
workspace and billing dimension, and of the whole. Prices are the default price book's. A cost is rounded half-even to
12 decimals per event and then summed; usage is exact.

    python3 test/trace/expected-totals.py slice=examples/trace-slice full=../shared/data \
        > test/trace/expected-totals.json
"""

import csv
import decimal
import json
import sys
from decimal import Decimal
from pathlib import Path

decimal.getcontext().prec = 60
decimal.getcontext().traps[decimal.Inexact] = True

COST_STEP = Decimal("0.000000000001")
PRICES = {  # USD, for how many units
    "agent_async_requests_count": (Decimal("0.20"), Decimal(1_000_000)),
    "agent_compute_runtime_gbs": (Decimal("0.0000115"), Decimal(1)),
}


def cost_of(dimension, usage):
    amount, per = PRICES[dimension]
    with decimal.localcontext() as context:
        context.traps[decimal.Inexact] = False
        return (usage * amount / per).quantize(COST_STEP, rounding=decimal.ROUND_HALF_EVEN)


def plain(value):
    """The shortest decimal, without an exponent."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def totals_of(directory):
    totals = {}
    for workspace in ("code", "conv"):
        with open(Path(directory) / f"azure-llm-2023-{workspace}.csv", newline="", encoding="ascii") as file:
            for row in csv.DictReader(file):
                seconds = int(row["ContextTokens"]) * Decimal("0.0002") + int(row["GeneratedTokens"]) * Decimal("0.03")
                usages = {"agent_async_requests_count": Decimal(1), "agent_compute_runtime_gbs": 80 * seconds}
                for dimension, usage in usages.items():
                    total = totals.setdefault((workspace, dimension), [Decimal(0), Decimal(0), 0])
                    total[0] += usage
                    total[1] += cost_of(dimension, usage)
                    total[2] += 1
    return {
        "groups": [
            {
                "workspace": workspace,
                "billingDimension": dimension,
                "usage": plain(usage),
                "cost": plain(cost),
                "events": events,
            }
            for (workspace, dimension), (usage, cost, events) in sorted(totals.items())
        ],
        "totalUsage": plain(sum(usage for usage, _, _ in totals.values())),
        "totalCost": plain(sum(cost for _, cost, _ in totals.values())),
        "events": sum(events for _, _, events in totals.values()),
    }


if __name__ == "__main__":
    sources = [argument.split("=", 1) for argument in sys.argv[1:]]
    if not sources:
        sys.exit(__doc__)
    print(json.dumps({name: totals_of(directory) for name, directory in sources}, indent=2))
