/** startTime and endTime. Source: the API specification, section "Billing API", and DESIGN section 6. */
import type { Window } from '@meterline/catalog';
import { WINDOW_PARAMETERS } from '@meterline/catalog/api';
import { QueryParameters } from './query-parameters.js';

export function readWindow(parameters: QueryParameters): Window | undefined {
  const startTime = parameters.required('startTime', WINDOW_PARAMETERS.startTime);
  const endTime = parameters.required('endTime', WINDOW_PARAMETERS.endTime);
  if (startTime === undefined || endTime === undefined) return undefined;
  if (startTime < endTime) return { startTime, endTime };
  parameters.fault('endTime', 'endTime must be after startTime by at least a millisecond.');
  return undefined;
}

/** A request whose only parameters are the window's. @throws ApiError `invalid_parameter` with every fault */
export function parseWindowRequest(rawQuery: string): Window {
  const parameters = new QueryParameters(rawQuery, { names: Object.keys(WINDOW_PARAMETERS) });
  const window = readWindow(parameters);
  if (!window || !parameters.areValid) throw parameters.refusal();
  return window;
}
