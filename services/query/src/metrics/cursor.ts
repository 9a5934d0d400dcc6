/** What a metrics cursor is bound to. */
import type { Caller } from '../auth/caller.js';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import type { CursorBinding } from '../paging/cursor-codec.js';

/** Every parameter but `limit`, in canonical form: the order of groupBy and the spelling of a time do not matter. */
export function metricsCursorBinding(caller: Caller, accountId: string, request: MetricsRequest): CursorBinding {
  const { window, resolution, groupBy, filters } = request;
  const { workspace, resource_type, resource_name, resource_uuid, billing_dimension } = filters;
  return [
    'metrics',
    caller.id,
    accountId,
    [window.startTime, window.endTime],
    resolution,
    groupBy,
    // Not being filtered by (null in JSON) differs from being filtered by "".
    [workspace, resource_type, resource_name, resource_uuid, billing_dimension],
  ];
}
