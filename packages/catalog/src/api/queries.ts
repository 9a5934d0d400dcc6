/** Defines the types of the client's queries, derived from the schemas of the parameters. The client does not send undefined members. */
import type * as z from 'zod';
import type {
  ACCOUNT_FILTERS,
  ACCOUNTS_METRICS_PARAMETERS,
  EVENTS_PARAMETERS,
  EXCLUDING_FILTERS,
  VALUE_FILTERS,
  WINDOW_PARAMETERS,
} from './parameters.js';

/** An RFC 3339 timestamp in UTC, or a Date. */
export type Instant = string | Date;

/** A half-open window: it includes startTime and excludes endTime. */
export type WindowQuery = { readonly [Name in keyof typeof WINDOW_PARAMETERS]: Instant };

type Repeated<Filters extends Record<string, z.ZodType>> = {
  readonly [Name in keyof Filters]?: z.output<Filters[Name]> | readonly z.output<Filters[Name]>[] | undefined;
};
type Single<Parameters extends Record<string, z.ZodType>> = {
  readonly [Name in keyof Parameters]?: z.output<Parameters[Name]> | undefined;
};

export type FilterQuery = Repeated<typeof VALUE_FILTERS & typeof EXCLUDING_FILTERS> & {
  readonly withoutResourceUuid?: boolean | undefined;
  readonly excludeWithoutResourceUuid?: boolean | undefined;
};

export type ResourceTypesQuery = WindowQuery & FilterQuery;

export type EventsQuery = ResourceTypesQuery & Single<Omit<typeof EVENTS_PARAMETERS, keyof ResourceTypesQuery>>;

type AccountFilterQuery = Repeated<typeof ACCOUNT_FILTERS>;

/** A query about one account must not use `account`, neither as a filter nor in `groupBy`. */
export type MetricsQuery = ResourceTypesQuery &
  AccountFilterQuery &
  Single<Omit<typeof ACCOUNTS_METRICS_PARAMETERS, keyof (ResourceTypesQuery & AccountFilterQuery)>>;
