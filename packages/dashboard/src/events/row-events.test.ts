import { describe, expect, it } from '@jest/globals';
import type { MetricsQuery } from '@meterline/client';
import { rowEventsQuery, scopeText } from './row-events.js';

const window = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-11-01T00:00:00Z' } as const;

describe('the events behind a row', () => {
  it('have the window and filters of the table and the values that the row is grouped by', () => {
    const query: MetricsQuery = {
      ...{ ...window, resolution: 'daily', groupBy: ['workspace', 'resource_name'], limit: 100, cursor: 'next' },
      ...{ workspace: ['prod', 'dev'], resourceType: 'agent' as const },
    };
    const values = { workspace: 'dev', resourceName: 'crawler', billingDimension: undefined, resourceUuid: 'u-1' };
    expect(rowEventsQuery(query, ['workspace', 'resource_name'], values)).toEqual({
      ...window,
      ...{ workspace: 'dev', resourceType: 'agent', resourceName: 'crawler' },
    });
  });

  it('are all of the table where it has no groups', () => {
    expect(rowEventsQuery({ ...window, resourceName: 'x' }, [], {})).toEqual({ ...window, resourceName: 'x' });
  });

  it('of an instance are its own, and of what has none those without', () => {
    const query = { ...window, resourceUuid: ['u-1', 'u-2'], withoutResourceUuid: true } as const;
    const sent = (resourceUuid: string) =>
      JSON.parse(JSON.stringify(rowEventsQuery(query, ['resource_uuid'], { resourceUuid })));
    expect(sent('u-2')).toEqual({ ...window, resourceUuid: 'u-2' });
    expect(sent('')).toEqual({ ...window, withoutResourceUuid: true });
  });

  it('are not asked for by what the table leaves out of the dimensions that the row has a value of', () => {
    const excluded = {
      excludeResourceType: 'job',
      excludeResourceUuid: 'u-1',
      excludeWithoutResourceUuid: true,
    } as const;
    const sent = JSON.parse(
      JSON.stringify(rowEventsQuery({ ...window, ...excluded }, ['resource_uuid'], { resourceUuid: 'u-2' })),
    );
    expect(sent).toEqual({ ...window, excludeResourceType: 'job', resourceUuid: 'u-2' });
  });

  it('are described by their time and filters', () => {
    const filters = { resourceType: ['agent', 'job'], withoutResourceUuid: true } as const;
    expect(scopeText({ ...window, ...filters })).toBe(
      '1 Oct – 31 Oct 2025 · Resource type: Agent or Job · Instance: no instance id',
    );
    const excluded = { excludeResourceType: ['agent', 'job'], excludeWithoutResourceUuid: true } as const;
    expect(scopeText({ ...window, ...excluded })).toBe(
      '1 Oct – 31 Oct 2025 · Resource type: all but Agent and Job · Instance: all but no instance id',
    );
  });
});
