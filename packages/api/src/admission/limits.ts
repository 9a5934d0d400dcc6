/** The header fields that tell a client of its limits. Source: draft-ietf-httpapi-ratelimit-headers-10, sections 3 and 4. */
import type { PartyLimits, RateLimit, RateState } from './shared-limits.js';

/** The policies' names, public and stable. */
export type Policy = 'account' | 'caller' | 'account-statements' | 'caller-statements';

export function policyField({ account, accountRate, caller, callerRate }: PartyLimits): string {
  return [
    ratePolicy('account', accountRate),
    ratePolicy('caller', callerRate),
    ...statementPolicy('account-statements', account),
    ...statementPolicy('caller-statements', caller),
  ].join(', ');
}

/** The window is the time in which an empty bucket fills. */
function ratePolicy(name: Policy, { perSecond, burst }: RateLimit): string {
  return `"${name}";q=${burst};w=${Math.max(1, Math.ceil(burst / perSecond))}`;
}

function statementPolicy(name: Policy, most: number | undefined): string[] {
  return most === undefined ? [] : [`"${name}";q=${most};qu="concurrent-requests"`];
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
