/** The flags that select usage. Several values of a filter are alternatives; `!=` leaves its values out. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  EXCLUDING_PARAMETER,
  RESOURCE_TYPES,
  type ResourceType,
} from '@meterline/catalog/questions';
import type { FilterQuery } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from '../commander.js';
import { nameOf } from '../flags.js';

/** Those with a flag of their own, as the API names them. */
interface OwnFlags {
  readonly workspace?: readonly string[];
  readonly resourceType?: readonly ResourceType[];
  readonly resourceName?: readonly string[];
  readonly resourceUuid?: readonly string[];
  readonly withoutResourceUuid?: boolean;
  readonly billingDimension?: readonly BillingDimension[];
}

interface Filters extends OwnFlags {
  readonly excludeWorkspace?: readonly string[];
  readonly excludeResourceType?: readonly ResourceType[];
  readonly excludeResourceName?: readonly string[];
  readonly excludeResourceUuid?: readonly string[];
  readonly excludeWithoutResourceUuid?: boolean;
  readonly excludeBillingDimension?: readonly BillingDimension[];
}

export interface FilterFlags extends OwnFlags {
  readonly filter?: Filters;
}

const NAMES = [...Object.keys(EXCLUDING_PARAMETER), 'withoutResourceUuid'];
const EXCLUDING: ReadonlyMap<string, string> = new Map([
  ...Object.entries(EXCLUDING_PARAMETER),
  ['withoutResourceUuid', 'excludeWithoutResourceUuid'],
]);
const resourceTypeOf = oneOf(RESOURCE_TYPES);
const billingDimensionOf = oneOf(BILLING_DIMENSIONS);

/** Flags that may be given several times, for one value or another; `--filter` has the names of the API's parameters. */
export function withFilters(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--filter <name=value>',
        'a filter as in the API, such as resourceType=agent; != leaves out; may be repeated',
      )
        .choices([...NAMES.map((name) => `${name}=`), ...NAMES.map((name) => `${name}!=`)])
        .argParser(filterOf),
    )
    .addOption(repeated('--workspace <name>', 'only this workspace; admins only', nameOf))
    .addOption(repeated('--resource-type <type>', 'only this type', resourceTypeOf, RESOURCE_TYPES))
    .addOption(repeated('--resource-name <name>', 'only this resource', nameOf))
    .addOption(repeated('--resource-uuid <uuid>', 'only this instance', nameOf))
    .option('--without-resource-uuid', 'only what has no UUID')
    .addOption(
      repeated('--billing-dimension <dimension>', 'only this dimension', billingDimensionOf, BILLING_DIMENSIONS),
    );
}

export function filtersOf({ filter = {}, ...flags }: FilterFlags): FilterQuery {
  return {
    ...filter,
    workspace: both(flags.workspace, filter.workspace),
    resourceType: both(flags.resourceType, filter.resourceType),
    resourceName: both(flags.resourceName, filter.resourceName),
    resourceUuid: both(flags.resourceUuid, filter.resourceUuid),
    withoutResourceUuid: flags.withoutResourceUuid ?? filter.withoutResourceUuid,
    billingDimension: both(flags.billingDimension, filter.billingDimension),
  };
}

function both<Value>(one: readonly Value[] = [], other: readonly Value[] = []): readonly Value[] | undefined {
  return one.length + other.length === 0 ? undefined : [...one, ...other];
}

/**
 * `resourceType=agent` or `resourceType!=agent`, added to those before; also by the API's name, `excludeResourceType=agent`.
 * The value may hold an equals sign.
 * @throws InvalidArgumentError
 */
function filterOf(text: string, before: Filters = {}): Filters {
  const [, named = '', operator = '', value = ''] = /^(\w+)(!?=)(.*)$/s.exec(text) ?? [];
  const name = operator === '!=' ? EXCLUDING.get(named) : named;
  switch (name) {
    case 'workspace':
    case 'resourceName':
    case 'resourceUuid':
    case 'excludeWorkspace':
    case 'excludeResourceName':
    case 'excludeResourceUuid':
      return { ...before, [name]: [...(before[name] ?? []), nameOf(value)] };
    case 'resourceType':
    case 'excludeResourceType':
      return { ...before, [name]: [...(before[name] ?? []), resourceTypeOf(value)] };
    case 'billingDimension':
    case 'excludeBillingDimension':
      return { ...before, [name]: [...(before[name] ?? []), billingDimensionOf(value)] };
    case 'withoutResourceUuid':
    case 'excludeWithoutResourceUuid':
      return { ...before, [name]: oneOf(['true', 'false'])(value) === 'true' };
    default:
      throw new InvalidArgumentError(
        `It must be name=value or name!=value, such as resourceType=agent, with a name of ${NAMES.join(', ')}.`,
      );
  }
}

/** A flag that collects its values. */
function repeated<Value extends string>(
  flags: string,
  description: string,
  parse: (text: string) => Value,
  choices?: readonly Value[],
): Option {
  const option = new Option(flags, description);
  if (choices) option.choices(choices);
  return option.argParser((text, values: readonly Value[] = []) => [...values, parse(text)]);
}

/** @throws InvalidArgumentError */
function oneOf<const Value extends string>(values: readonly Value[]): (text: string) => Value {
  return (text) => {
    const value = values.find((each) => each === text);
    if (value === undefined) throw new InvalidArgumentError(`Allowed choices are ${values.join(', ')}.`);
    return value;
  };
}
