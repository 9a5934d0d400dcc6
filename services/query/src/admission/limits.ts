/** The limits that the environment sets. How the defaults were chosen: docs/operations.md, "Many tenants". */
import type { WarehouseOptions } from '@meterline/warehouse';
import type { Env } from '../env.js';
import type { AdmissionLimits } from './admission.js';

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
