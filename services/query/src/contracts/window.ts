/** startTime and endTime. Source: the API specification, section "Billing API", and DESIGN section 6. */
import { parseTimestamp, type Window } from '@meterline/catalog';
import { z } from 'zod';
import { QueryParameters } from './query-parameters.js';

/** Exclusive: the first instant after the year 2100. */
const END_OF_TIME = Date.UTC(2101, 0);

const RULE = 'must be RFC 3339 in UTC (Z or +00:00), from 1970 through 2100, such as 2025-10-01T00:00:00Z';
const LOST_PLUS = 'has a space where its offset had a plus; write Z, or encode the plus as %2B';

/** In a query string a bare plus means a space. */
const SPACE_OFFSET = / \d\d:?\d\d$/;

const instant = z.string().transform((text, context) => {
  const value = parseTimestamp(text);
  if (value !== undefined && value >= 0 && value < END_OF_TIME) return value;
  context.addIssue({ code: 'custom', message: SPACE_OFFSET.test(text) ? LOST_PLUS : RULE });
  return z.NEVER;
});

export function readWindow(parameters: QueryParameters): Window | undefined {
  const startTime = parameters.required('startTime', instant);
  const endTime = parameters.required('endTime', instant);
  if (startTime === undefined || endTime === undefined) return undefined;
  if (startTime < endTime) return { startTime, endTime };
  parameters.fault('endTime', 'endTime must be after startTime by at least a millisecond.');
  return undefined;
}

/** A request whose only parameters are the window's. @throws ApiError `invalid_parameter` with every fault */
export function parseWindowRequest(rawQuery: string): Window {
  const parameters = new QueryParameters(rawQuery, { names: ['startTime', 'endTime'] });
  const window = readWindow(parameters);
  if (!window || !parameters.areValid) throw parameters.refusal();
  return window;
}
