/** A list of usage to be priced: from arguments, or a JSON Lines file such as `meterline emit` takes. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  type EpochMs,
  isBillingDimension,
  parseTimestamp,
  parseUsage,
} from '@meterline/catalog';
import { z } from 'zod';
import { CommandError, usageError } from '../command-error.js';

export interface UsageItem {
  readonly billingDimension: BillingDimension;
  /** Scaled by 10^9. */
  readonly usage: bigint;
  /** When it is used; undefined: at the time of the question. */
  readonly timestamp: EpochMs | undefined;
  readonly account: string | undefined;
}

const lineSchema = z.object({
  billingDimension: z.enum(
    BILLING_DIMENSIONS,
    'billingDimension must be one of those that "meterline dimensions" lists',
  ),
  usage: z.union([z.number(), z.string()], 'usage must be a number or a decimal string'),
  timestamp: z.string('timestamp must be RFC 3339 in UTC').optional(),
  accountId: z.string('accountId must be a string').optional(),
  void: z.boolean('void must be true or false').optional(),
});

/** `agent_compute_runtime_gbs=12.5`. @throws CommandError */
export function usageArgument(text: string): UsageItem {
  const [dimension = '', amount = '', ...rest] = text.split('=');
  if (rest.length > 0 || !isBillingDimension(dimension)) {
    throw usageError(`${text} is not <dimension>=<usage>, with a dimension that "meterline dimensions" lists`);
  }
  const usage = parseUsage(dimension, amount);
  if (!usage.ok) throw usageError(`${text}: ${usage.message}`);
  return { billingDimension: dimension, usage: usage.value, timestamp: undefined, account: undefined };
}

/** Undefined for an event that is void, and costs nothing. @throws CommandError with what is wrong with the line */
export function usageLine(text: string, place: string): UsageItem | undefined {
  const line = lineSchema.safeParse(parseJson(text));
  if (!line.success) throw new CommandError(`${place}: ${line.error.issues.map(({ message }) => message).join('; ')}`);
  const { billingDimension, timestamp: at, accountId: account } = line.data;
  if (line.data.void) return undefined;
  const usage = parseUsage(billingDimension, line.data.usage);
  if (!usage.ok) throw new CommandError(`${place}: ${usage.message}`);
  const timestamp = at === undefined ? undefined : parseTimestamp(at);
  if (at !== undefined && timestamp === undefined) {
    throw new CommandError(`${place}: timestamp must be RFC 3339 in UTC, such as 2026-11-01T00:00:00Z`);
  }
  return { billingDimension, usage: usage.value, timestamp, account };
}

/** Null, which the schema refuses, for a text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
