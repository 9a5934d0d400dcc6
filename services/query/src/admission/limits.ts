/**
 * The limits that the environment sets, and the header fields that tell a client of them. How the defaults were chosen:
 * docs/operations.md, "Many tenants". Source of the fields: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4.
 */
import type { WarehouseOptions } from '@meterline/warehouse';
import type { Env } from '../env.js';
import type { AdmissionLimits } from './admission.js';
import type { PartyLimits, RateLimit, RateState } from './shared-limits.js';

/** Requests of all accounts together that may wait, in requests of one. */
const ACCOUNTS_WAITING = 10;

export function admissionLimits(env: Env): AdmissionLimits {
  return {
    process: env.QUERY_STATEMENTS,
    account: env.QUERY_ACCOUNT_STATEMENTS,
    caller: env.QUERY_CALLER_STATEMENTS,
    accountRate: { perSecond: env.QUERY_ACCOUNT_RATE, burst: env.QUERY_ACCOUNT_BURST },
    callerRate: { perSecond: env.QUERY_CALLER_RATE, burst: env.QUERY_CALLER_BURST },
    maxWaitMs: env.QUERY_MAX_WAIT_MS,
    maxWaitingOfAccount: env.QUERY_MAX_WAITING,
    maxWaiting: ACCOUNTS_WAITING * env.QUERY_MAX_WAITING,
  };
}

/** A connection for each statement at once, and a bound on each of them. */
export function statementLimits(
  env: Env,
): Pick<WarehouseOptions, 'maxConnections' | 'maxExecutionMs' | 'maxMemoryBytes'> {
  return {
    maxConnections: env.QUERY_STATEMENTS,
    maxExecutionMs: env.QUERY_STATEMENT_MS,
    maxMemoryBytes: env.QUERY_STATEMENT_MB * 2 ** 20,
  };
}

/** The policies' names, public and stable. */
export type Policy = 'account' | 'caller' | 'account-statements' | 'caller-statements';

export function policyField({ account, accountRate, caller, callerRate }: PartyLimits): string {
  return [
    ratePolicy('account', accountRate),
    ratePolicy('caller', callerRate),
    `"account-statements";q=${account};qu="concurrent-requests"`,
    `"caller-statements";q=${caller};qu="concurrent-requests"`,
  ].join(', ');
}

/** The window is the time in which an empty bucket fills. */
function ratePolicy(name: Policy, { perSecond, burst }: RateLimit): string {
  return `"${name}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`;
}

export type RateStates = Readonly<Record<'account' | 'caller', RateState>>;

/** @param exhausted the limit of statements at once that refused the request, if one did */
export function limitField(states: RateStates, limits: PartyLimits, exhausted?: Policy): string {
  const items = [
    rateItem('account', states.account, limits.accountRate),
    rateItem('caller', states.caller, limits.callerRate),
    ...(exhausted ? [`"${exhausted}";r=0`] : []),
  ];
  return items.join(', ');
}

function rateItem(name: Policy, { remaining, waitMs }: RateState, { perSecond }: RateLimit): string {
  return `"${name}";r=${remaining};t=${seconds(waitMs > 0 ? waitMs : 1000 / perSecond)}`;
}

/** Whole seconds, at least one: a client that returns earlier is refused again. */
export function seconds(ms: number): number {
  return Math.max(1, Math.ceil(ms / 1000));
}
