/**
 * Sums usage of the same resource and dimension within a window and a UTC hour into one event. Its id and its time are those
 * of the first usage in it, and it is sent as any other event; so it counts once however often it is sent.
 */
import {
  type Checked,
  type EpochMs,
  formatScaled,
  MS_PER_HOUR,
  rejected,
  USAGE_SCALE,
  type UsageEvent,
  type UsageEventInput,
} from '@meterline/catalog/plain';
import { type CheckedEvent, checkEvent, type EventToRecord } from './event.js';

/** Usage that is summed. It has no id and no time of its own. */
export type UsageToSum = Omit<EventToRecord, (typeof ONE_EVENTS)[number]>;

/** What only a single event can have. A sum would lose it. */
const ONE_EVENTS = ['eventId', 'timestamp', 'revision', 'void'] as const;

/** More sums than this are reported before their window ends. */
const MOST_SUMS = 10_000;
/** The usage of an event is below 10^15. */
const LARGEST_USAGE = 10n ** BigInt(15 + USAGE_SCALE);
/** No name contains it. */
const SEPARATOR = '\0';

/** @throws whatever a getter of the usage throws */
export function checkUsage(input: UsageToSum, now: EpochMs): Checked<CheckedEvent> {
  const field = ONE_EVENTS.find((name) => Object.hasOwn(input, name));
  if (field !== undefined) {
    return rejected('unknown_field', `${field} is for an event of its own; record it`);
  }
  return checkEvent(input, now);
}

/** @returns false when there is no room for the event; it is offered again, with what has been added by then */
export type Offer<Event = EventToRecord> = (event: Event) => boolean;

export interface Sums {
  /** @returns false when there is no room for another sum */
  add(usage: CheckedEvent): boolean;
  /** Those that find no room stay for the next window. */
  reportAll(): void;
}

export function openSums(windowMs: number, offer: Offer<UsageEventInput>): Sums {
  const sums = new Map<string, { readonly event: UsageEventInput; total: bigint }>();
  let window: NodeJS.Timeout | undefined;

  function openWindow(): void {
    // It keeps the process alive: a program that ends by itself has reported its sums.
    window ??= setTimeout(reportAll, windowMs);
  }

  function reportAll(): void {
    clearTimeout(window);
    window = undefined;
    for (const [key, { event, total }] of sums) {
      if (!offer({ ...event, usage: formatScaled(total, USAGE_SCALE) })) break;
      sums.delete(key);
    }
    if (sums.size > 0) openWindow();
  }

  return {
    add: ({ sent, read }) => {
      const key = keyOf(read);
      const sum = sums.get(key);
      if (sum && sum.total + read.usage < LARGEST_USAGE) {
        sum.total += read.usage;
        return true;
      }
      if (sum || sums.size >= MOST_SUMS) reportAll();
      if (sums.has(key) || sums.size >= MOST_SUMS) return false;
      sums.set(key, { event: sent, total: read.usage });
      openWindow();
      return true;
    },
    reportAll,
  };
}

function keyOf(read: UsageEvent): string {
  const hour = Math.floor(read.timestamp / MS_PER_HOUR);
  const names = [read.accountId, read.workspace, read.resourceName, read.resourceUuid, read.billingDimension];
  return [...names, hour].join(SEPARATOR);
}
