/** The flags of `meterline metrics`, and the question they make. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  canonicalGroupBy,
  GROUP_BY_DIMENSIONS,
  type GroupByDimension,
  isGroupByDimension,
  MAX_GROUP_BY_DIMENSIONS,
  RESOLUTIONS,
  RESOURCE_TYPES,
  type Resolution,
  type ResourceType,
} from '@meterline/catalog';
import type { MetricsQuery } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { nameOf, wholeNumber } from '../commands/flags.js';
import { type WindowFlags, windowOf, withWindow } from './window.js';

export interface QueryFlags extends WindowFlags {
  readonly resolution?: Resolution;
  readonly groupBy?: readonly GroupByDimension[];
  readonly workspace?: string;
  readonly resourceType?: ResourceType;
  readonly resourceName?: string;
  readonly resourceUuid?: string;
  readonly billingDimension?: BillingDimension;
  readonly limit?: number;
  readonly cursor?: string;
}

const MAX_LIMIT = 100;

export function withQuery(command: Command): Command {
  return withWindow(command)
    .addOption(
      new Option('--resolution <resolution>', 'length of a bucket (default: by the window)').choices(RESOLUTIONS),
    )
    .option(
      '--group-by <dimensions>',
      `up to ${MAX_GROUP_BY_DIMENSIONS} of ${GROUP_BY_DIMENSIONS.join(', ')}, with commas between`,
      groupByOf,
    )
    .option('--workspace <name>', 'only this workspace; admins only', nameOf)
    .addOption(new Option('--resource-type <type>', 'only this type').choices(RESOURCE_TYPES))
    .option('--resource-name <name>', 'only this resource', nameOf)
    .option('--resource-uuid <uuid>', 'only this instance; "" for what has none')
    .addOption(new Option('--billing-dimension <dimension>', 'only this dimension').choices(BILLING_DIMENSIONS))
    .option('--limit <n>', `groups on a page, at most ${MAX_LIMIT}`, (text) => wholeNumber(text, 1, MAX_LIMIT))
    .option('--cursor <cursor>', 'the page that meta.nextCursor of another answer stands for');
}

/** @throws CommandError when the flags contradict each other */
export function queryOf(flags: QueryFlags, now: Date): MetricsQuery {
  const { resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, limit, cursor } =
    flags;
  return {
    ...windowOf(flags, now),
    resolution,
    groupBy,
    workspace,
    resourceType,
    resourceName,
    resourceUuid,
    billingDimension,
    limit,
    cursor,
  };
}

/** @throws InvalidArgumentError */
function groupByOf(text: string): GroupByDimension[] {
  const names = text.split(',').map((name) => name.trim());
  const known = names.filter(isGroupByDimension);
  if (
    known.length === names.length &&
    new Set(names).size === names.length &&
    names.length <= MAX_GROUP_BY_DIMENSIONS
  ) {
    return canonicalGroupBy(known);
  }
  throw new InvalidArgumentError(
    `It must be up to ${MAX_GROUP_BY_DIMENSIONS} different ones of ${GROUP_BY_DIMENSIONS.join(', ')}.`,
  );
}
