/** What must be stored for jobs as Redis holds them: DESIGN section 3, from the rules of a job and the oracle. */
import { eventsOfJob, parsed } from '../model/event-rules.js';
import { hourOf } from '../oracle/calendar.js';
import { printDecimal } from '../oracle/exact.js';
import { Oracle } from '../oracle/model.js';
import { COST_DECIMALS, USAGE_DECIMALS } from '../oracle/prices.js';

export interface Refusal {
  readonly job: string;
  readonly position: number;
  /** What was sent; a text for a job that was refused whole. */
  readonly sent: unknown;
  readonly isWhole: boolean;
}

export class JobModel {
  readonly #oracle = new Oracle();
  readonly refusals: Refusal[] = [];
  /** Their ids. */
  readonly jobs: string[] = [];

  /** @param data the job's data as Redis returns it @param now a time at which the worker may take it */
  add(job: string, data: string | Buffer, now: number): void {
    this.jobs.push(job);
    const text = data.toString();
    const events = eventsOfJob(parsed(text));
    if (!events) this.refusals.push({ job, position: 0, sent: text, isWhole: true });
    for (const [position, sent] of events?.entries() ?? []) {
      if (this.#oracle.accept(sent, now) === 'refused') this.refusals.push({ job, position, sent, isWhole: false });
    }
  }

  /** By identity the rows of usage_events, as text, of which exactly one must be stored. */
  rows(): Map<string, Readonly<Record<string, string>>[]> {
    return new Map(
      this.#oracle.stored().map(({ accountId, eventId, hour, revision, payloads }) => [
        identityOf(accountId, eventId, hour),
        payloads.map((payload) => ({
          workspace: payload.workspace,
          resource_type: payload.resourceType,
          resource_name: payload.resourceName,
          resource_uuid: payload.resourceUuid,
          billing_dimension: payload.billingDimension,
          usage: printDecimal(payload.usage, USAGE_DECIMALS),
          cost: printDecimal(payload.cost, COST_DECIMALS),
          timestamp: String(payload.timestamp),
          revision: String(revision),
          voided: String(payload.voided),
        })),
      ]),
    );
  }
}

export function identityOf(accountId: string, eventId: string, timestamp: number): string {
  return JSON.stringify([accountId, eventId, hourOf(timestamp)]);
}
