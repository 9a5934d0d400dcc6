/** What can be asked of the API, as programs hold it: the parameters, read. */
import type * as z from 'zod';
import type { METRICS_PARAMETERS, WINDOW_PARAMETERS } from './parameters.js';

/** RFC 3339 in UTC, or the same as a Date. */
export type Instant = string | Date;

/** Half-open: startTime is inside, endTime is not. */
export type WindowQuery = { readonly [Name in keyof typeof WINDOW_PARAMETERS]: Instant };

type MetricsParameters = Omit<typeof METRICS_PARAMETERS, keyof WindowQuery>;

/** Members that are left out or undefined are not sent. */
export type MetricsQuery = WindowQuery & {
  readonly [Name in keyof MetricsParameters]?: z.output<MetricsParameters[Name]> | undefined;
};
