import { describe, expect, it } from '@jest/globals';
import { breadcrumb } from './breadcrumb.js';
import { DEFAULT_VIEW, drillDown, zoomInto } from './view.js';

describe('the breadcrumb', () => {
  const day = { from: Date.parse('2026-11-14T00:00:00Z'), to: Date.parse('2026-11-15T00:00:00Z') };

  it('is not there before the first step', () => {
    expect(breadcrumb(DEFAULT_VIEW)).toEqual([]);
  });

  it('names what each step added, and leads back to what was before', () => {
    const agents = drillDown(DEFAULT_VIEW, { resourceType: 'agent' }, day);
    const support = drillDown(agents, { resourceName: 'support' });
    const crumbs = breadcrumb(support);
    expect(crumbs.map(({ label }) => label)).toEqual(['All usage · Last 30 days', 'Agent, 14 Nov 2026', 'support']);
    expect(crumbs.map(({ to }) => to)).toEqual([DEFAULT_VIEW, agents, undefined]);
  });

  it('names a range of time alone', () => {
    expect(breadcrumb(zoomInto(DEFAULT_VIEW, day)).map(({ label }) => label)).toEqual([
      'All usage · Last 30 days',
      '14 Nov 2026',
    ]);
  });
});
