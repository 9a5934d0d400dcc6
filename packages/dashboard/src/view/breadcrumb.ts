/** The way into a group or a day, step by step, as names and views to go back to. */
import { ENTRY_FIELD } from '@meterline/catalog';
import { filterText } from '../breakdown/texts.js';
import type { PeriodChoice } from '../period/period.js';
import { periodText } from '../period/period-text.js';
import { backTo, type TrailStep, type View } from './view.js';

export interface Crumb {
  /** Its place in the trail. */
  readonly key: number;
  readonly label: string;
  /** Undefined: it is what is shown. */
  readonly to: View | undefined;
}

/** Empty where nothing was stepped into. */
export function breadcrumb(view: View): Crumb[] {
  if (view.trail.length === 0) return [];
  const steps: readonly TrailStep[] = [...view.trail, view];
  return steps.map((step, position) => {
    const before = steps[position - 1];
    return {
      key: position,
      label: before ? stepText(before, step) : `All usage · ${periodText(step.period)}`,
      to: position < view.trail.length ? backTo(view, position) : undefined,
    };
  });
}

/** What a step added. */
function stepText(before: TrailStep, after: TrailStep): string {
  const added = Object.values(ENTRY_FIELD).flatMap((field) => {
    const filter = after.filters[field];
    return filter && JSON.stringify(filter) !== JSON.stringify(before.filters[field]) ? filterText(field, filter) : [];
  });
  if (!isSamePeriod(before.period, after.period)) added.push(periodText(after.period));
  return added.join(', ') || 'Changed';
}

function isSamePeriod(a: PeriodChoice, b: PeriodChoice): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
