/**
 * What must be stored for jobs as Redis holds them: DESIGN section 3, worked out without the product's code, from the
 * rules of a single event.
 */
import { isDeepStrictEqual } from 'node:util';
import { eventsOfJob, type Payload, parsed, understand } from '../model/event-rules.js';
import { hourOf } from '../oracle/calendar.js';
import { printDecimal } from '../oracle/exact.js';
import { COST_DECIMALS, costUnder, EXAMPLE_BOOK, USAGE_DECIMALS } from '../oracle/prices.js';

/** A row of usage_events, as text. */
export type StoredEvent = Readonly<
  Record<
    | 'workspace'
    | 'resource_type'
    | 'resource_name'
    | 'resource_uuid'
    | 'billing_dimension'
    | 'usage'
    | 'cost'
    | 'timestamp'
    | 'revision'
    | 'voided',
    string
  >
>;

interface Identity {
  readonly accountId: string;
  revision: number;
  /** More than one if producers sent different content under the same revision: any of them may win. */
  payloads: Payload[];
}

export interface Refusal {
  readonly job: string;
  readonly position: number;
  /** What was sent; a text for a job that was refused whole. */
  readonly sent: unknown;
  readonly isWhole: boolean;
}

export class JobModel {
  readonly #identities = new Map<string, Identity>();
  readonly refusals: Refusal[] = [];
  /** Their ids. */
  readonly jobs: string[] = [];

  get identities(): ReadonlyMap<string, Identity> {
    return this.#identities;
  }

  /** @param data the job's data as Redis returns it @param now a time at which the worker may take it */
  add(job: string, data: string | Buffer, now: number): void {
    this.jobs.push(job);
    const text = data.toString();
    const events = eventsOfJob(parsed(text));
    if (!events) {
      this.refusals.push({ job, position: 0, sent: text, isWhole: true });
      return;
    }
    for (const [position, sent] of events.entries()) {
      if (!this.#accept(sent, now)) this.refusals.push({ job, position, sent, isWhole: false });
    }
  }

  #accept(sent: unknown, now: number): boolean {
    const event = understand(sent, now);
    if (!event) return false;
    const { accountId, eventId, revision, payload } = event;
    const key = identityOf(accountId, eventId, payload.timestamp);
    const known = this.#identities.get(key);
    if (!known || known.revision < revision) {
      this.#identities.set(key, { accountId, revision, payloads: [payload] });
    } else if (known.revision === revision && !known.payloads.some((other) => isDeepStrictEqual(other, payload))) {
      known.payloads.push(payload);
    }
    return true;
  }

  /** What is wrong with a stored row; undefined if nothing is. */
  faultOf(key: string, row: StoredEvent): string | undefined {
    const identity = this.#identities.get(key);
    if (!identity) return 'an event that was not accepted is stored';
    const fits = identity.payloads.some((payload) => isDeepStrictEqual(rowOf(identity, payload), row));
    return fits ? undefined : `another payload than the winner's is stored`;
  }
}

export function identityOf(accountId: string, eventId: string, timestamp: number): string {
  return JSON.stringify([accountId, eventId, hourOf(timestamp)]);
}

function rowOf({ accountId, revision }: Identity, payload: Payload): StoredEvent {
  const { billingDimension, timestamp, usage } = payload;
  const cost = costUnder(EXAMPLE_BOOK, { accountId, billingDimension, timestamp, usage });
  if (cost === undefined) throw new Error(`the oracle has no price for ${billingDimension}`);
  return {
    workspace: payload.workspace,
    resource_type: payload.resourceType,
    resource_name: payload.resourceName,
    resource_uuid: payload.resourceUuid,
    billing_dimension: billingDimension,
    usage: printDecimal(usage, USAGE_DECIMALS),
    cost: printDecimal(cost, COST_DECIMALS),
    timestamp: String(timestamp),
    revision: String(revision),
    voided: String(payload.voided),
  };
}
