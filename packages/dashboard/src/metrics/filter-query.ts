/**
 * A view's filters as the API takes them: for each field the values of which one is enough. The API cannot exclude; it is
 * asked for all other values instead. Of fields whose values producers choose, those are read first.
 */
import { MAX_FILTER_VALUES } from '@meterline/catalog/api';
import type { FilterQuery, MetricsAnswer } from '@meterline/client';
import {
  dimensionsLeft,
  excludedNames,
  type Filter,
  type Filters,
  type NameField,
  passes,
  typesLeft,
} from '../view/filters.js';

/** All values that a field has in some time, at least those in the window that is asked for; or more than a filter may mean. */
export type KnownValues = Readonly<Partial<Record<NameField, readonly string[]>>>;

/** The filters cannot be asked for; the message says what to change. */
export class FilterProblem extends Error {
  override readonly name = 'FilterProblem';
}

const NOTHING_LEFT = 'The filters exclude everything that was used in this time. Allow some of it again.';

/**
 * @param known the values of the fields that exclude some
 * @throws FilterProblem when nothing is left, or more than the API takes
 */
export function filterQuery(filters: Filters, known: KnownValues): FilterQuery {
  const { resourceType, billingDimension } = filters;
  const types = resourceType && typesLeft(filters);
  const dimensions = billingDimension && dimensionsLeft(filters);
  const names = (field: NameField) => namesOf(filters[field], known[field]);
  const uuids = names('resourceUuid');
  const query: FilterQuery = {
    ...(filters.workspace && { workspace: oneOrMore(names('workspace')) }),
    ...(types && { resourceType: oneOrMore(types) }),
    ...(filters.resourceName && { resourceName: oneOrMore(names('resourceName')) }),
    ...(uuids && uuidQuery(uuids)),
    ...(dimensions && { billingDimension: oneOrMore(dimensions) }),
  };
  const count = Object.values(query).flat().length;
  if (count > MAX_FILTER_VALUES) throw new FilterProblem(tooMany(filters));
  return query;
}

/** Reads the values of a field, page by page, until there are more than the filter may mean. */
export async function readNames(
  pages: AsyncIterable<Pick<MetricsAnswer, 'data'>>,
  field: NameField,
  filter: Filter | undefined,
): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { data } of pages) {
    names.push(...data.map((entry) => entry[field] ?? ''));
    if (names.filter((name) => passes(filter, name)).length > MAX_FILTER_VALUES) break;
  }
  return names;
}

function namesOf(filter: Filter | undefined, known: readonly string[] | undefined): readonly string[] | undefined {
  if (!filter?.isExcluded) return filter?.values;
  return (known ?? []).filter((value) => passes(filter, value));
}

/** The API has a parameter of its own for what has no instance id. */
function uuidQuery(values: readonly string[]): FilterQuery {
  const ids = values.filter((value) => value !== '');
  if (ids.length === values.length) return { resourceUuid: oneOrMore(ids) };
  return { withoutResourceUuid: true, ...(ids.length > 0 && { resourceUuid: oneOrMore(ids) }) };
}

/** A single value is sent and shown as people write it. */
function oneOrMore<Value>(values: readonly Value[] | undefined): Value | readonly Value[] {
  const [first, ...others] = values ?? [];
  if (first === undefined) throw new FilterProblem(NOTHING_LEFT);
  return others.length === 0 ? first : [first, ...others];
}

function tooMany(filters: Filters): string {
  const way =
    excludedNames(filters).length > 0 ? 'Choose what you want to see instead of what to leave out.' : 'Choose fewer.';
  return `The API takes ${MAX_FILTER_VALUES} values in all filters together, and these filters mean more. ${way}`;
}
