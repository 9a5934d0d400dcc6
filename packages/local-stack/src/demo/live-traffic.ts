/** Plays a slice of the real trace in its own rhythm, over and over, as if its requests came in now. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  DIMENSIONS,
  decimalText,
  divideDecimals,
  type EpochMs,
  parseTimestamp,
  USAGE_SCALE,
  type UsageEventInput,
} from '@meterline/catalog';
import { eventsOfRequest, parseTrace, type TraceFile, type TraceRequest, URL_NAMESPACE, uuidV5 } from '../trace.js';

const SLICE_DIRECTORY = new URL('../../trace-slice/', import.meta.url);
const SLICES = ['azure-llm-2023-code.csv', 'azure-llm-2023-conv.csv'] as const;

/**
 * The trace is of a cloud's own GPU hosts. With all their memory the demo account would be a single colour; with a
 * hundredth of it the replay costs about as much as the fleet of a small company beside it.
 */
const MEMORY_DIVISOR = decimalText('100');

/** A pause between two rounds of a slice. */
const GAP_MS = 1_000;

interface Player {
  readonly trace: TraceFile;
  /** Milliseconds from the first request of the slice, ascending. */
  readonly offsets: readonly number[];
  roundStart: EpochMs;
  next: number;
}

export class LiveTraffic {
  readonly #players: readonly Player[];
  readonly #accountId: string;

  private constructor(players: readonly Player[], accountId: string) {
    this.#players = players;
    this.#accountId = accountId;
  }

  static async open(accountId: string, now: EpochMs): Promise<LiveTraffic> {
    const players = SLICES.map(async (name) => {
      const text = await readFile(fileURLToPath(new URL(name, SLICE_DIRECTORY)), 'utf8');
      return player(parseTrace(name, text), now);
    });
    return new LiveTraffic(await Promise.all(players), accountId);
  }

  /** The events of the requests that were due since the last call. */
  until(now: EpochMs): UsageEventInput[] {
    return this.#players.flatMap((player) => this.#play(player, now));
  }

  #play(player: Player, now: EpochMs): UsageEventInput[] {
    const events: UsageEventInput[] = [];
    for (;;) {
      const request = player.trace.requests[player.next];
      const offset = player.offsets[player.next];
      if (request === undefined || offset === undefined) {
        const lastOffset = player.offsets.at(-1) ?? 0;
        player.roundStart += lastOffset + GAP_MS;
        player.next = 0;
        continue;
      }
      const instant = player.roundStart + offset;
      if (instant > now) return events;
      for (const event of eventsOfRequest(player.trace, request, { accountId: this.#accountId })) {
        // The trace's ids name its own requests; each round is new traffic.
        const eventId = uuidV5(URL_NAMESPACE, `live:${player.roundStart}:${event.eventId}`);
        events.push({ ...event, eventId, usage: demoUsage(event), timestamp: new Date(instant).toISOString() });
      }
      player.next += 1;
    }
  }
}

function demoUsage({ billingDimension, usage }: UsageEventInput): UsageEventInput['usage'] {
  if (DIMENSIONS[billingDimension].unit !== 'gbs') return usage;
  return divideDecimals(decimalText(String(usage)), MEMORY_DIVISOR, USAGE_SCALE) ?? usage;
}

function player(trace: TraceFile, now: EpochMs): Player {
  const [first] = trace.requests;
  const start = first ? instantOf(first) : 0;
  return { trace, offsets: trace.requests.map((request) => instantOf(request) - start), roundStart: now, next: 0 };
}

function instantOf({ second, fraction }: TraceRequest): EpochMs {
  return (parseTimestamp(second) ?? 0) + Math.trunc(Number(fraction) / 10_000);
}
