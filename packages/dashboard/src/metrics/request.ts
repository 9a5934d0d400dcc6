/** From the view to what is asked of the API. */
import {
  canonicalGroupBy,
  defaultResolution,
  type EpochMs,
  exceededCap,
  formatTimestamp,
  type GroupByDimension,
  RESOLUTIONS,
  type Resolution,
  type Window,
} from '@meterline/catalog';
import type { MetricsQuery } from '@meterline/client';
import { presetWindow } from '../period/preset.js';
import type { View } from '../view/view.js';
import { dimensionsLeft, usageScope } from './usage-scope.js';

export function windowOf({ period }: View, now: EpochMs): Window {
  return 'preset' in period ? presetWindow(period.preset, now) : { startTime: period.from, endTime: period.to };
}

/** The one chosen, or the usual one for the window when none was, or when the window has outgrown the choice. */
export function resolutionOf({ resolution }: View, window: Window): Resolution {
  return resolution && exceededCap(resolution, window) === undefined ? resolution : defaultResolution(window);
}

export interface ResolutionChoice {
  readonly resolution: Resolution;
  /** Why it cannot be chosen for this window. */
  readonly disabledReason: string | undefined;
}

export function resolutionChoices(window: Window): ResolutionChoice[] {
  return RESOLUTIONS.map((resolution) => {
    const cap = exceededCap(resolution, window);
    return { resolution, disabledReason: cap && `For up to ${cap}; choose a shorter period.` };
  });
}

/** Usage can be told when there is a single billing dimension, and the API shows it when grouped by that. */
export function requestedGroupBy(view: View): GroupByDimension[] {
  const single = dimensionsLeft(view.filters).length === 1;
  return canonicalGroupBy(single ? [...view.groupBy, 'billing_dimension'] : view.groupBy);
}

export function metricsQuery(view: View, window: Window): MetricsQuery {
  return {
    ...view.filters,
    startTime: formatTimestamp(window.startTime),
    endTime: formatTimestamp(window.endTime),
    resolution: resolutionOf(view, window),
    groupBy: requestedGroupBy(view),
  };
}

/** The same without the breakdown; the API shows usage only by billing dimension. */
export function wholeQuery(view: View, query: MetricsQuery): MetricsQuery {
  return { ...query, groupBy: showsUsageOf(view) ? ['billing_dimension'] : [] };
}

/** The measure that can be shown: usage was perhaps chosen in a view where it had one unit. */
export function measureOf(view: View): View['measure'] {
  return showsUsageOf(view) ? 'usage' : 'cost';
}

function showsUsageOf(view: View): boolean {
  return view.measure === 'usage' && usageScope(view).unit !== undefined;
}

/** Workspaces one by one are for the admins of an account. Source: the API specification, section "Errors". */
export function needsAdmin({ filters, groupBy }: View): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined;
}
