/** Defines the body of a request that saves a view. */
import * as z from 'zod';
import { filterQuery, ignoredViewParameter, readViewQuery, type ViewQuery, writeViewQuery } from '../view.js';
import { FILTER_PARAMETERS, METRICS_PARAMETERS } from './parameters.js';
import { MAX_FILTER_VALUES } from './request.js';

const MAX_VIEW_QUERY_LENGTH = 8_000;
const MAX_QUOTED = 60;
const COPY = "copy the part after the question mark of the page's address, without the account";

/** Parses the query of a view, and returns it as the page writes it. */
const viewQuery = z
  .string('must be a string')
  .max(MAX_VIEW_QUERY_LENGTH, `must have at most ${MAX_VIEW_QUERY_LENGTH} characters`)
  .transform((text, context) => {
    const query = new URLSearchParams(text);
    const view = readViewQuery(query);
    const problem = viewProblem(query, view);
    if (problem === undefined) return String(new URLSearchParams(writeViewQuery(view).map((pair) => [...pair])));
    context.addIssue({ code: 'custom', message: problem });
    return z.NEVER;
  })
  .meta({
    description:
      "The view as the page's address has it after the question mark, without the account, such as `period=month&group=workspace`.",
  });

function viewProblem(query: URLSearchParams, { filters }: ViewQuery): string | undefined {
  const ignored = ignoredViewParameter(query);
  if (ignored !== undefined) {
    return `has a parameter or value that views do not have, ${JSON.stringify(ignored.slice(0, MAX_QUOTED))}; ${COPY}`;
  }
  const group = query.get('group') ?? 'none';
  const grouping = group === 'none' ? undefined : METRICS_PARAMETERS.groupBy.safeParse(group).error;
  if (grouping) return `has the parameter group, which ${grouping.issues[0]?.message}`;
  const values = Object.entries(filterQuery(filters)).flatMap(([name, list]) =>
    [list ?? []].flat().map((value) => ({ name, value })),
  );
  if (values.length > MAX_FILTER_VALUES) return `must filter by at most ${MAX_FILTER_VALUES} values`;
  for (const { name, value } of values) {
    const filter =
      isFilter(name) && typeof value === 'string' ? FILTER_PARAMETERS[name].safeParse(value).error : undefined;
    if (filter) return `has a filter by ${name}, which ${filter.issues[0]?.message}`;
  }
  return undefined;
}

function isFilter(name: string): name is keyof typeof FILTER_PARAMETERS {
  return Object.hasOwn(FILTER_PARAMETERS, name);
}

export const viewBodySchema = z.strictObject({ query: viewQuery });
